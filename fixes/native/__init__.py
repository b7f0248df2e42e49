"""The native half of mend 301.3: sources, and how they are built for the installed MindSpore."""
