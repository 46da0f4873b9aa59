"""Programs that see another /etc, with the system's CAs where a distribution keeps them.

The other /etc is mounted in a name space of mounts of their own, so it needs `needs_mount`
(tests/support/skips.py). Of the machine's it has what names and libraries are found by.
"""
import os
import shutil
import subprocess
import tempfile

# base/net/trust_file.c also knows one outside /etc.
PLACES = ('ssl/certs/ca-certificates.crt', 'pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
          'pki/tls/certs/ca-bundle.crt', 'ssl/ca-bundle.pem', 'ssl/cert.pem')
KEPT = ('group', 'hosts', 'ld.so.cache', 'nsswitch.conf', 'passwd')


def run_with_system_cas(command, place, pem, **options):
    """Runs it where /etc/PLACE has the CAs of the file `pem`, and no other file has any.
    options: of subprocess.run. Gives the CompletedProcess with text output."""
    with tempfile.TemporaryDirectory() as etc:
        for name in KEPT:
            if os.path.exists(os.path.join('/etc', name)):
                shutil.copy(os.path.join('/etc', name), etc)
        path = os.path.join(etc, place)
        os.makedirs(os.path.dirname(path))
        shutil.copy(pem, path)
        script = 'mount --bind "$1" /etc && shift && exec "$@"'
        return subprocess.run(['unshare', '--mount', 'sh', '-c', script, 'sh', etc, *command],
                              capture_output=True, text=True, **options)
