"""The Debian packages in roots of Debian 12: built there without a network, clean for lintian,
installed with what Debian has, and brought to a first object by README.md's words alone."""
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.request

from tests.support.clients import read
from tests.support.daemon import SOURCE
from tests.support.debian import enter, make_root, run, run_in, tarball
from tests.support.skips import needs_mount

READY_SECONDS = 120  # ends what hangs
PACKAGES = {'deltabucket', 'deltabucket-server', 'libdeltabucket0', 'libdeltabucket-dev'}


def words_of_readme():
    """The block of README.md that begins with the packages' installation."""
    [block] = re.findall(r'(?:^    .*\n)*^    sudo apt install .*\n(?:^    .*\n)+', read(os.path.join(SOURCE, 'README.md')).decode(), re.M)
    return [line.strip() for line in block.splitlines()]


@needs_mount
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-debian-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        build = os.path.join(cls.scratch, 'build')
        make_root(build, cls.scratch, 'buildd')
        run('tar', 'xf', tarball(), '-C', os.path.join(build, 'srv'))
        [source] = glob.glob(os.path.join(build, 'srv', 'deltabucket-*'))
        inside = source[len(build):]
        run_in(build, 'apt-get', 'build-dep', '-y', '-qq', '--no-install-recommends', inside)
        run_in(build, 'sh', '-c', f'cd {inside} && dpkg-buildpackage -us -uc -b', network=False)
        cls.packages = os.path.join(cls.scratch, 'packages')
        os.mkdir(cls.packages)
        for path in glob.glob(os.path.join(build, 'srv', '*_*')):
            shutil.copy(path, cls.packages)
        shutil.rmtree(build)

    def path(self, name):
        [path] = glob.glob(os.path.join(self.packages, f'{name}_*.deb'))
        return path

    def test_lintian_has_no_complaint(self):
        [changes] = glob.glob(os.path.join(self.packages, '*.changes'))
        run('lintian', '--allow-root', '--pedantic', '--display-info', '--fail-on', 'error,warning,info,pedantic', changes)

    def test_there_are_these_packages(self):
        self.assertEqual({os.path.basename(path).split('_')[0] for path in glob.glob(os.path.join(self.packages, '*.deb'))} - {f'{name}-dbgsym' for name in PACKAGES}, PACKAGES)
        self.assertEqual(run('dpkg-deb', '--show', '--showformat=${Package}', self.path('libdeltabucket0')), 'libdeltabucket0')
        listed = run('dpkg-deb', '--ctrl-tarfile', self.path('deltabucket-server'), encoding='latin-1')
        self.assertIn('conffiles', listed)

    def test_a_newcomer_stores_a_first_object_by_the_readme(self):
        root = os.path.join(self.scratch, 'root')
        make_root(root, self.scratch, 'apt', 'sudo')
        self.addCleanup(shutil.rmtree, root)
        run_in(root, 'useradd', '--create-home', '--shell', '/bin/bash', 'newcomer')
        with open(os.path.join(root, 'etc/sudoers.d/newcomer'), 'w') as file:
            file.write('newcomer ALL=(ALL) NOPASSWD: ALL\n')
        home = os.path.join(root, 'home/newcomer')
        for name in PACKAGES - {'libdeltabucket0', 'libdeltabucket-dev'}:
            shutil.copy(self.path(name), home)
        with open(os.path.join(home, 'notes.txt'), 'w') as file:
            file.write('a first object\n')
        newcomer = Newcomer(root)
        self.addCleanup(newcomer.stop)
        lines = words_of_readme()
        self.assertIn('apt install', lines[0])
        newcomer.type(lines[0].replace('apt install', 'apt install -y'))
        newcomer.start_service()
        shown = ''.join(newcomer.type(line) for line in lines[1:])
        self.assertEqual(newcomer.type('deltabucket get files/notes.txt -'), 'a first object\n')
        self.check_link(shown, os.path.join(home, 'ca.pem'))
        self.check_installed(root, newcomer)

    def check_link(self, shown, ca):
        """The link that the console's command prints signs in."""
        address, code = re.search(r'(https://\S+)/console/#link=(\S+)', shown).groups()
        request = urllib.request.Request(f'{address}/-/sessions', json.dumps({'link': code}).encode(), {'X-Deltabucket-Console': '1', 'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca)) as reply:
            self.assertTrue(json.load(reply)['root'])
            self.assertIn('HttpOnly', reply.headers['Set-Cookie'])

    def check_installed(self, root, newcomer):
        self.assertNotRegex(newcomer.journal(), r'db_[a-z0-9]{40}')
        self.assertIn('deltabucketd keys add --data /var/lib/deltabucket', newcomer.journal())
        self.assertIn('The settings are right.', newcomer.type('sudo -u deltabucket deltabucketd --check-config --config /etc/deltabucket/deltabucketd.conf'))
        self.assertEqual(newcomer.type('stat -c "%U %a" /var/lib/deltabucket'), 'deltabucket 700\n')
        for path in ('usr/share/man/man8/deltabucketd-keys.8.gz', 'usr/share/man/man1/deltabucket-publish.1.gz', 'usr/share/man/man5/deltabucketd.conf.5.gz',
                     'usr/share/bash-completion/completions/deltabucketd', 'usr/share/zsh/vendor-completions/_deltabucket', 'usr/share/deltabucket/engines/vllm', 'usr/share/deltabucket/edge/edge-server.conf',
                     'etc/systemd/system/multi-user.target.wants/deltabucketd.service'):
            self.assertTrue(os.path.lexists(os.path.join(root, path)), path)
        newcomer.stop()
        newcomer.type('sudo apt-get purge -y deltabucket-server')
        self.assertTrue(os.path.exists(os.path.join(root, 'var/lib/deltabucket/catalog.db')))
        self.assertFalse(os.path.exists(os.path.join(root, 'etc/deltabucket')))


class Newcomer:
    """A person at a shell in the root, where systemd does not run: what the unit says is done by hand."""

    def __init__(self, root):
        self.root = root
        self.service = None
        self.token = None
        self.log = os.path.join(os.path.dirname(root), 'journal')

    def type(self, line):
        """Types a command, and the token where it is asked for. Gives what came on the standard output."""
        done = subprocess.run(enter(self.root, 'su', '-', 'newcomer', '-c', line), input=f'{self.token}\n', capture_output=True, text=True, timeout=1200)
        if done.returncode != 0:
            raise AssertionError(f'{line} ended with {done.returncode}: {done.stdout[-4000:]}{done.stderr[-4000:]}')
        shown = re.search(r'\bdb_\w+', done.stdout)
        self.token = shown[0] if shown else self.token
        return done.stdout

    def start_service(self):
        unit = read(os.path.join(self.root, 'lib/systemd/system/deltabucketd.service')).decode()
        setting = dict(re.findall(r'^(\w+)=(.*)$', unit, re.M))
        user = setting['User']
        folder = f'/var/lib/{setting["StateDirectory"]}'
        run_in(self.root, 'install', '-d', '-m', setting['StateDirectoryMode'], '-o', user, '-g', setting['Group'], folder)
        # A pid namespace of its own would hide root's commands from the server: its socket tells by number.
        command = ['chroot', self.root, 'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'sh', '-c', f'umask {setting["UMask"]} && exec "$@"', 'sh', 'setpriv',
                   f'--reuid={user}', f'--regid={setting["Group"]}', '--init-groups', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all',
                   *shlex.split(setting['ExecStart'])]
        with open(self.log, 'w') as log:
            self.service = subprocess.Popen(command, stdout=log, stderr=log)
        limit = time.monotonic() + READY_SECONDS
        while 'is ready' not in self.journal():
            if self.service.poll() is not None or time.monotonic() > limit:
                raise AssertionError(f'the service did not start: {self.journal()}')
            time.sleep(0.1)

    def journal(self):
        return read(self.log).decode()

    def stop(self):
        if self.service is not None and self.service.poll() is None:
            self.service.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.service.wait(60)
            self.service.kill()


if __name__ == '__main__':
    unittest.main()
