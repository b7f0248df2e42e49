"""Say what this machine can show, and for each lack the command that mends it."""
import argparse
def prepare_parser(parser: argparse.ArgumentParser) -> None: ...
def run(args: argparse.Namespace) -> int: return 0
