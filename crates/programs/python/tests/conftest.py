"""What all tests need."""

import signal

# Jobs that a shell starts in the background ignore Ctrl-C, which tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)
