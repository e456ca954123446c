"""`machines doctor`: one small check after another on each machine, all machines side by side.

A module for each group of checks; in each the pure verdicts (`judge_…`) stand apart from what asks.
"""
