"""Where trials run. Every engine is given a specification and leaves a finished trial folder behind."""
