"""The Python package over libdeltabucket, against a real server. tests/support/package.py builds it
with the library of $DELTABUCKET_BUILD; numpy, ml_dtypes and cffi come from setup/clients.
"""
