"""Pure vocabulary: amounts, intervals, calendars, accounts. Standard library only."""
