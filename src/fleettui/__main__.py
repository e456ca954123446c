"""`python -m fleettui`."""

from fleettui.cli.main import run

if __name__ == "__main__":
    run()
