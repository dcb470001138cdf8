"""What is fast, as ratios of two things timed in one run: one small file a goal.

measuring   two things in turn, medians of five; a row of the table
worker      a function timed in a process of its own, again and again
page        the tables of docs/performance.md
s1 … s10    the goals
growth      how cost grows with features and steps
breakdown   where the time goes
"""
