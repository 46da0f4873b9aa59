"""Readers and writers of weight deltas that share nothing with the program under test, and the tests that set one against the other.

They are written from the formats' facts with numpy, safetensors' reference library, zstandard, xxhash and blake3 (setup/clients installs them), and are as
strict as the strictest reader known: what the command line writes must pass here, and what is written here must pass the command line.
"""
