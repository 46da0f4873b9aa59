"""Roots of Debian 12 by mmdebstrap, from the mirror that this machine's apt is set up for, and the
tarball that packages are built from."""
import contextlib
import glob
import os
import re
import subprocess

from tests.support.daemon import BUILD

SUITE = 'bookworm'
MAKE_SECONDS = 3600


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=MAKE_SECONDS, **options)
    if done.returncode != 0:
        raise AssertionError(f'{" ".join(words)} ended with {done.returncode}: {done.stdout[-6000:]}')
    return done.stdout


def tarball():
    """The path of what `make dist` makes."""
    run('make', '-s', '-C', BUILD, 'dist')
    [path] = glob.glob(os.path.join(BUILD, 'deltabucket-*.tar.gz'))
    return path


def settings_of_apt(folder):
    """mmdebstrap's arguments for the mirror: this machine's sources of that suite, and how its apt reaches them."""
    sources = [path for path in ('/etc/apt/sources.list', *sorted(glob.glob('/etc/apt/sources.list.d/*'))) if path.endswith(('.list', '.sources')) and
               re.search(rf'^[^#\n]*\b{SUITE}\b', read(path), re.M) and 'debian' in read(path)]
    options = os.path.join(folder, 'apt.conf')
    lines = [line for path in ('/etc/apt/apt.conf', *sorted(glob.glob('/etc/apt/apt.conf.d/*'))) for line in read(path).splitlines()
             if line.startswith('Acquire::') and line.endswith(';')]
    with open(options, 'w') as file:
        file.writelines(f'{line}\n' for line in lines)
    return [f'--aptopt={options}'] if lines else [], sources


def read(path):
    with contextlib.suppress(OSError), open(path) as file:
        return file.read()
    return ''


def make_root(target, folder, variant, *packages):
    """A root at `target`, a folder or a tarball, with these packages."""
    options, sources = settings_of_apt(folder)
    included = [f'--include={",".join(packages)}'] if packages else []
    run('mmdebstrap', '--quiet', f'--variant={variant}', *options, *included, '--skip=cleanup/apt/lists', SUITE, target, *sources)


def enter(root, *words, network=True):
    """The command that runs `words` in the root, with a /proc, and with nothing left of it at its end."""
    return ['unshare', '--mount', '--pid', '--fork', '--kill-child', *([] if network else ['--net']), f'--mount-proc={root}/proc', 'chroot', root,
            'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive', *words]


def run_in(root, *words, **options):
    return run(*enter(root, *words, **options))
