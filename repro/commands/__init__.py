"""One file a verb: its docstring is its help, ``prepare_parser`` its options, ``run`` its work; and what two share."""
