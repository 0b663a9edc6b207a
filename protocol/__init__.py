"""The machines: pure tables, no clock, thread, process, socket or torch."""
