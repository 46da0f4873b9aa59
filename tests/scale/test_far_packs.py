"""A server whose packs lie at an S3 store: Ceph's gateway (tests/support/ceph.py)."""
import os
import random
import re
import shutil
import signal
import threading
import unittest

from tests.support.ceph import KEY_ID, SECRET, Ceph
from tests.support.daemon import Daemon

LARGE = 40_000_000  # three parts of an upload, and ten blocks
AGE_SECONDS = 90  # an open pack is closed after ten seconds


@unittest.skipUnless(shutil.which('radosgw'), 'needs setup/install ceph')
class FarPacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ceph = Ceph()
        cls.addClassCleanup(cls.ceph.__exit__)
        cls.ceph.__enter__()
        assert cls.ceph.request('PUT', '/packs').status == 200

    def setUp(self):
        self.ceph.processes.get('rgw') or self.ceph.start_gateway()
        self.prefix = f'of/{self._testMethodName}'
        self.bodies, self.random = {}, random.Random(7)
        self.daemon = self.enterContext(self.make_daemon())
        self.assertEqual(self.daemon.request('PUT', '/obj').status, 200)

    def make_daemon(self, **more):
        daemon = Daemon(tls=False, arguments=['--packs', f's3+{self.ceph.endpoint}/packs/{self.prefix}'],
                        environment=dict(DELTABUCKET_PACKS_KEY_ID=KEY_ID, DELTABUCKET_PACKS_SECRET=SECRET), **more)
        daemon.is_damaged = True  # fsck looks for packs in the folder alone
        return daemon

    def put(self, key, size):
        self.bodies[key] = self.random.randbytes(size)
        reply = self.daemon.request('PUT', f'/obj/{key}', self.bodies[key])
        self.assertEqual(reply.status, 200, reply.body)

    def check_all(self):
        for key, body in self.bodies.items():
            reply = self.daemon.request('GET', f'/obj/{key}')
            self.assertEqual(reply.status, 200, reply.body[:500])
            self.assertTrue(reply.body == body, key)

    def objects(self):
        listing = self.ceph.request('GET', f'/packs?list-type=2&prefix={self.prefix.replace("/", "%2F")}').body.decode()
        return dict(zip(re.findall('<Key>(.*?)</Key>', listing), map(int, re.findall('<Size>(.*?)</Size>', listing))))

    def await_packs(self, count):
        """Until so many packs are at the store."""
        for _ in range(10 * AGE_SECONDS):
            packs = [key for key in self.objects() if key.endswith('.pack')]
            if len(packs) >= count:
                return packs
            threading.Event().wait(0.1)
        raise AssertionError(f'{self.objects()} {self.daemon.log()[-3000:]}')

    def drop_cache(self):
        self.daemon.stop()
        shutil.rmtree(os.path.join(self.daemon.folder, 'cache'))
        self.daemon.start()

    def test_bytes_come_back(self):
        for i, size in enumerate((0, 1, 3000, 200_000, 300_000, 5_000_000, LARGE)):
            self.put(f'k{i}', size)
        self.check_all()
        self.daemon.stop()
        self.daemon.start()
        self.check_all()
        self.await_packs(3)
        self.assertFalse(os.path.exists(os.path.join(self.daemon.folder, 'packs')) and os.listdir(os.path.join(self.daemon.folder, 'packs')))
        self.drop_cache()
        self.check_all()
        self.drop_cache()
        for first, last in ((0, 0), (4_194_000, 4_194_500), (LARGE - 10, LARGE - 1)):
            reply = self.daemon.request('GET', '/obj/k6', headers={'Range': f'bytes={first}-{last}'})
            self.assertEqual((reply.status, reply.body), (206, self.bodies['k6'][first:last + 1]))

    def test_many_readers_get_the_same(self):
        self.put('k', LARGE)
        self.drop_cache()
        wrong = []

        def read():
            reply = self.daemon.request('GET', '/obj/k')
            if reply.status != 200 or reply.body != self.bodies['k']:
                wrong.append(reply.status)

        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_kill_loses_nothing(self):
        for i in range(5):
            self.put(f'small{i}', 50_000)
            self.put(f'large{i}', 1_000_000)
            self.daemon.kill()
            self.daemon.start()
        self.check_all()
        self.drop_cache()
        self.check_all()

    def test_a_store_that_is_away(self):
        self.put('small', 50_000)
        self.put('large', 5_000_000)
        self.ceph.stop_gateway(signal.SIGKILL)
        self.check_all()  # what is here
        self.put('other', 60_000)
        self.daemon.stop()
        self.daemon.start()
        self.put('third', 70_000)
        self.check_all()
        self.ceph.start_gateway()
        self.await_packs(2)
        self.drop_cache()
        self.check_all()

    def test_wrong_local_bytes_cost_requests_alone(self):
        self.put('k', 9_000_000)
        self.daemon.stop()
        cache = os.path.join(self.daemon.folder, 'cache', 'packs')
        for folder, _, names in os.walk(cache):
            for name in names:
                with open(os.path.join(folder, name), 'r+b') as file:
                    size = os.path.getsize(file.name)
                    for at in range(0, size, 65536):
                        file.seek(at)
                        file.write(b'wrong')
        self.daemon.start()
        self.check_all()

    def test_a_deleted_object_leaves_the_store(self):
        self.put('k', 5_000_000)
        self.put('other', 5_000_000)
        before = len([key for key in self.objects() if key.endswith('.pack')])
        self.assertEqual(self.daemon.request('DELETE', '/obj/k').status, 204)
        del self.bodies['k']
        self.daemon.admin('gc')
        for _ in range(10 * AGE_SECONDS):
            if len([key for key in self.objects() if key.endswith('.pack')]) < before:
                break
            threading.Event().wait(0.1)
        else:
            raise AssertionError(f'{self.objects()} {self.daemon.log()[-3000:]}')
        self.drop_cache()
        self.check_all()

    def test_the_folder_is_not_taken_for_the_packs(self):
        self.put('k', 300_000)
        self.daemon.stop()
        here = rf'packs of this store lie at s3\+{self.ceph.endpoint}/packs/{self.prefix}'
        self.assertRegex(self.daemon.admin('fsck', check=False).stderr, here)
        arguments, self.daemon.arguments = self.daemon.arguments, []
        with self.assertRaisesRegex(RuntimeError, here):
            self.daemon.start()
        self.daemon.arguments = arguments
        self.daemon.start()
        self.check_all()

    def test_packs_in_the_folder_stay_there(self):
        near = self.enterContext(Daemon(tls=False))
        self.assertEqual(near.request('PUT', '/obj').status, 200)
        self.assertEqual(near.request('PUT', '/obj/k', bytes(range(256)) * 300).status, 200)
        near.stop()
        near.arguments, near.environment = self.daemon.arguments, self.daemon.environment
        with self.assertRaisesRegex(RuntimeError, 'start without the setting packs'):
            near.start()
        near.arguments = []
        near.start()
        self.assertEqual(near.request('GET', '/obj/k').body, bytes(range(256)) * 300)

    def test_what_is_wrong_is_said(self):
        for place, said in (('/srv/packs', r'packs must be s3://HOST'), ('s3://127.0.0.1/box', r'DELTABUCKET_PACKS_KEY_ID')):
            daemon = Daemon(tls=False, arguments=['--packs', place])
            with self.assertRaisesRegex(RuntimeError, said), daemon:
                pass


if __name__ == '__main__':
    unittest.main()
