"""The processes: operating-system facts become events, effects become system calls."""
