"""Hostile use of rushlight, seeded and counted: `make attack`, and a short form in the tests.

Each attack is a module of this folder with three names:

    TITLE                 what the table calls it
    SHORT                 how many attempts the test suite makes (`tests/laws/test_attacks.py`)
    attempts(seed, torch) yields once an attempt: None if rushlight held, else a text that says
                          how it broke, with what is needed to try it again. `torch` is PyTorch
                          where it is installed, else None.

`WEIGHT` (1.0 if absent) is its share of the time of `make attack`. An attack that goes on for ever
is fine: whoever runs it stops asking. What is printed last is a table of counts.
"""
