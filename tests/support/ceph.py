"""A real Ceph of one node with its S3 gateway, from Debian's packages (`setup/install ceph`): a monitor, an OSD that keeps its data in memory, and
radosgw. Everything listens on 127.0.0.1 and lies in one temporary folder.

It needs no manager. cephx must be on: radosgw refuses to start without.
"""
import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
import uuid

from tests.support.daemon import REPLY_SECONDS, Reply, held_port
from tests.support.signer import Signer

KEY_ID, SECRET = 'CEPHKEYFORTESTS00000', 'ceph-secret-for-tests-0123456789abcdef'
START_SECONDS = 180  # ends what hangs; it takes about three
STOP_SECONDS = 60
# The monitor waits a second before each change of its maps by default: a dozen of them stand between an empty folder and an answer to a request.
GLOBAL = dict(
    keyring='{folder}/keyring', mon_host='[v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]', public_addr='127.0.0.1', cluster_addr='127.0.0.1', ms_type='async+posix',
    auth_cluster_required='cephx', auth_service_required='cephx', auth_client_required='cephx',
    osd_pool_default_size=1, osd_pool_default_min_size=1, osd_pool_default_pg_num=1, osd_pool_default_pgp_num=1, osd_pool_default_pg_autoscale_mode='off',
    osd_crush_chooseleaf_type=0, osd_objectstore='memstore', mon_allow_pool_size_one='true', mon_data_avail_crit=0,
    paxos_propose_interval=0.05, paxos_min_wait=0.02, mon_tick_interval=1, mon_max_pg_per_osd=1000, osd_op_num_shards=2,
    run_dir='{folder}/run', admin_socket='{folder}/run/$name.asok', pid_file='', log_file='{folder}/log/$name.log', log_to_stderr='false',
    mon_data='{folder}/mon', osd_data='{folder}/osd', rgw_data='{folder}/rgw', setuser_match_path='',
    rgw_thread_pool_size=64, rgw_run_sync_thread='false', rgw_enable_lc_threads='false', rgw_enable_quota_threads='false')


class Ceph:
    """Use as a context manager. `megabytes`: as much as its disk holds."""

    def __init__(self, megabytes=4096):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-ceph-')
        self.held = [held_port() for _ in range(3)]
        self.v2, self.v1, self.port = (held.getsockname()[1] for held in self.held)
        self.megabytes, self.id, self.processes = megabytes, str(uuid.uuid4()), {}
        self.conf, self.keyring = os.path.join(self.folder, 'ceph.conf'), os.path.join(self.folder, 'keyring')

    @property
    def endpoint(self):
        return f'http://127.0.0.1:{self.port}'

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.processes)):
            self.end(name)
        for held in self.held:
            held.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        for name in ('run', 'log', 'mon', 'osd', 'rgw'):
            os.mkdir(os.path.join(self.folder, name))
        self.write_configuration()
        self.make_keys()
        self.begin('mon', 'ceph-mon', '-i', 'a', '-f')
        osd = str(uuid.uuid4())
        self.ceph('auth', 'import', '-i', self.keyring)
        self.ceph('osd', 'new', osd)
        self.run('ceph-osd', '-c', self.conf, '-i', '0', '--mkfs', '--osd-uuid', osd, '--keyring', self.keyring)
        self.begin('osd', 'ceph-osd', '-i', '0', '-f', '--keyring', self.keyring)
        self.start_gateway()
        self.run('radosgw-admin', '-c', self.conf, 'user', 'create', '--uid=test', '--display-name=test', f'--access-key={KEY_ID}', f'--secret-key={SECRET}')

    def write_configuration(self):
        places = dict(folder=self.folder, v2=self.v2, v1=self.v1)
        lines = ['[global]', f'fsid = {self.id}', f'memstore_device_bytes = {self.megabytes << 20}']
        lines += [f'{name} = {str(value).format(**places)}' for name, value in GLOBAL.items()]
        with open(self.conf, 'w') as file:
            file.write('\n'.join(lines) + f'\n[mon.a]\nmon_addr = [v2:127.0.0.1:{self.v2},v1:127.0.0.1:{self.v1}]\n')

    def make_keys(self):
        everything = {'mon': ('--cap', 'mon', 'allow *'), 'osd': ('--cap', 'osd', 'allow *')}
        for flag, name, parts in (('-C', 'mon.', 'mon'), (None, 'client.admin', 'mon osd'), (None, 'client.rgw', 'mon osd'), (None, 'osd.0', 'mon osd')):
            words = [word for part in parts.split() for word in everything[part]]
            self.run('ceph-authtool', *([flag] if flag else []), self.keyring, '-n', name, '--gen-key', *words)
        table = os.path.join(self.folder, 'monmap')
        self.run('monmaptool', '--create', '--fsid', self.id, '--addv', 'a', f'[v2:127.0.0.1:{self.v2},v1:127.0.0.1:{self.v1}]', table)
        self.run('ceph-mon', '-c', self.conf, '--mkfs', '-i', 'a', '--monmap', table, '--keyring', self.keyring)

    def run(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=START_SECONDS, env={**os.environ, 'CEPH_CONF': self.conf})
        if done.returncode != 0:
            raise RuntimeError(f'{" ".join(words)} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}')
        return done.stdout

    def ceph(self, *words):
        """A command to the monitor, which may still be starting."""
        return self.run('ceph', '-c', self.conf, '--connect-timeout', str(START_SECONDS), *words)

    def begin(self, name, *words):
        with open(os.path.join(self.folder, 'log', f'{name}.out'), 'ab') as out:
            self.processes[name] = subprocess.Popen([words[0], '-c', self.conf, *words[1:]], stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def end(self, name, sign=signal.SIGTERM):
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.send_signal(sign)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_gateway(self):
        self.begin('rgw', 'radosgw', '-n', 'client.rgw', '-f', '--keyring', self.keyring, '--rgw_frontends', f'beast endpoint=127.0.0.1:{self.port}')
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            if self.processes['rgw'].poll() is not None:
                break
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(self.endpoint, timeout=10):
                    return
            time.sleep(0.05)
        raise RuntimeError(f'radosgw does not answer: {self.log("client.rgw.log")}')

    def request(self, method, target, body=b''):
        """One signed request of its own connection."""
        headers = Signer(f'127.0.0.1:{self.port}', KEY_ID, SECRET).headers(method, target, body)
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=REPLY_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return Reply(response, response.read())

    def stop_gateway(self, sign=signal.SIGKILL):
        self.end('rgw', sign)

    def log(self, name):
        with contextlib.suppress(OSError), open(os.path.join(self.folder, 'log', name), errors='replace') as file:
            return file.read()[-4000:]
        return ''
