"""What a person does with buckets and objects: looks, searches, deletes, restores, shares, tags, and sets."""
import re
import urllib.request

from tests.support.console import ConsoleCase, Site, address
from tests.support.s3 import Bucket, texts, tree


class Objects(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def setUp(self):
        super().setUp()
        self.enter()
        self.bucket = Bucket(self.daemon, 'x' + self.id().rpartition('.')[2].replace('_', '-')[:40].strip('-'))
        self.addCleanup(self.bucket.close)

    def open_bucket(self, **query):
        self.open(address('buckets', self.bucket.name, **query))

    def row(self, text):
        return self.page.locator('tbody tr[data-at]', has_text=text)

    def in_seven_days(self):
        return self.page.evaluate("new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' }).format(Date.now() + 7 * 86400000)")

    def test_a_bucket_is_made_and_removed(self):
        self.open('#/buckets')
        self.button('Make bucket…').click()
        self.dialog().get_by_label('Name').fill('Not A Name')
        self.assertTrue(self.dialog().get_by_role('button', name='Make bucket').is_disabled())
        self.dialog().get_by_label('Name').fill('fresh')
        self.page.keyboard.press('Enter')
        self.says('The bucket is empty')
        self.assertEqual(self.ask('HEAD', '/fresh').status, 200)
        self.page.get_by_role('link', name='Settings').click()
        self.button('Remove bucket…').click()
        self.dialog().get_by_label('Type fresh to confirm').fill('fresh')
        self.dialog().get_by_role('button', name='Remove bucket').click()
        self.toast('Bucket fresh was removed.')
        self.assertEqual(self.ask('HEAD', '/fresh').status, 404)

    def test_a_bucket_that_is_not_empty_stays(self):
        self.allow('status of 409')
        self.bucket.put('k')
        self.open_bucket(view='settings')
        self.button('Remove bucket…').click()
        self.dialog().get_by_label('Type').fill(self.bucket.name)
        self.dialog().get_by_role('button', name='Remove bucket').click()
        self.dialog().get_by_role('alert').wait_for()
        self.assertEqual(self.bucket.ask('HEAD').status, 200)

    def test_pages_of_a_long_list(self):
        self.open(address('buckets', 'many'))
        self.says('1,000 entries, and more')
        self.page.get_by_label('Choose all 1,000 loaded').check()
        self.says('More are not loaded yet.')
        self.page.get_by_label('Choose 00000.txt').uncheck()
        self.count(self.page.get_by_text('More are not loaded yet.'), 0)
        self.page.get_by_label('Choose 00000.txt').check()
        self.button('Show more').click()
        self.says('1,100 entries')
        self.says('1,000 entries chosen')
        self.page.get_by_label('Choose all 1,100 loaded').check()
        self.says('1,100 entries chosen')
        self.count(self.page.get_by_text('More are not loaded yet.'), 0)
        self.count(self.button('Show more'), 0)

    def test_folders_and_the_way_back(self):
        self.open(address('buckets', 'files'))
        self.row('runs/').locator('a').click()
        self.row('a/').locator('a').click()
        self.row('one.bin').wait_for()
        self.page.get_by_role('navigation', name='Where this page is').get_by_role('link', name='runs').click()
        self.row('b/').wait_for()
        self.count(self.row('one.bin'), 0)

    def test_search_finds_below(self):
        self.open(address('buckets', 'files'))
        self.page.get_by_label('Search this folder and below').fill('three')
        self.row('runs/b/three.bin').wait_for()
        self.says('1 object found among')
        self.page.get_by_label('Search this folder and below').fill('nothing like this')
        self.says('No key below here has this text')

    def test_chosen_objects_and_folders_are_deleted(self):
        for key in ('a/1', 'a/2', 'b', 'c'):
            self.bucket.put(key)
        self.open_bucket()
        for name in ('a/', 'b'):
            self.page.get_by_label(f'Choose {name}', exact=True).check()
        self.button('Delete').click()
        self.dialog().get_by_text('a/2').wait_for()
        self.dialog().get_by_text('The bucket keeps no versions').wait_for()
        self.dialog().get_by_role('button', name='Cancel').click()
        self.assertEqual(len(self.bucket.keys()), 4)
        self.button('Delete').click()
        self.dialog().get_by_role('button', name='Delete 3 objects').click()
        self.toast('3 objects deleted.')
        self.count(self.row('a/'), 0)
        self.assertEqual(self.bucket.keys(), ['c'])

    def test_all_that_is_loaded_is_chosen_and_deleted_after_one_question(self):
        for key in ('in/a', 'in/b', 'in/sub/c', 'in/sub/d', 'out'):
            self.bucket.put(key)
        self.open_bucket(prefix='in/')
        every = self.page.get_by_label('Choose all 3 loaded')
        every.check()
        self.page.get_by_role('status').filter(has_text='3 entries chosen').wait_for()
        self.page.get_by_label('Choose b', exact=True).uncheck()
        self.says('2 entries chosen')
        self.assertEqual(every.evaluate('box => [box.checked, box.indeterminate]'), [False, True])
        self.button('Clear selection').click()
        self.count(self.button('Delete'), 0)
        self.assertEqual(every.evaluate('box => [box.checked, box.indeterminate, box === document.activeElement]'), [False, False, True])
        for chosen in (True, False, True):
            self.page.keyboard.press('Space')
            self.count(self.page.get_by_role('region', name='What is chosen'), int(chosen))
        self.shown('chosen')
        self.button('Delete').click()
        self.dialog().get_by_role('heading', name=f'Delete 4 objects from {self.bucket.name}/in/?').wait_for()
        self.shown('delete-many')
        self.dialog().get_by_role('button', name='Delete 4 objects').click()
        self.toast('4 objects deleted.')
        self.assertEqual(self.bucket.keys(), ['out'])

    def test_many_deleted_objects_come_back(self):
        self.bucket.set_versioning('Enabled')
        for key in ('d/a', 'd/b', 'd/sub/c', 'd/stays', 'e'):
            self.bucket.put(key, b'old')
            self.bucket.put(key, f'newest {key}'.encode())
        for key in ('d/a', 'd/b', 'd/b', 'd/sub/c', 'e', 'd/never'):
            self.bucket.ask('DELETE', key)
        self.open_bucket(prefix='d/')
        self.page.get_by_role('link', name='Deleted', exact=True).click()
        self.says('3 deleted objects found among')
        self.page.get_by_label('Choose all 3 loaded').check()
        self.page.get_by_label('Choose sub/c', exact=True).uncheck()
        self.shown('deleted')
        self.button('Restore 2 objects').click()
        self.toast('2 objects restored.')
        self.says('1 deleted object found among')
        self.assertEqual(self.bucket.keys(), ['d/a', 'd/b', 'd/stays'])
        self.assertEqual(self.bucket.ask('GET', 'd/b').body, b'newest d/b')

    def test_a_deleted_object_is_found_where_a_page_of_versions_ends(self):
        self.bucket.set_versioning('Enabled')
        for number in range(999):
            self.bucket.put(f'a{number:03d}')
        self.bucket.put('z', b'kept')
        self.bucket.ask('DELETE', 'z')  # the marker is the last row of the first page
        self.open_bucket(view='deleted')
        self.page.get_by_label('Choose z', exact=True).check()
        self.button('Restore 1 object').click()
        self.says('Nothing here was deleted')
        self.assertEqual(self.bucket.ask('GET', 'z').body, b'kept')

    def test_what_is_refused_stays_deleted_and_is_said(self):
        self.bucket.set_versioning('Enabled')
        self.bucket.put('k')
        self.bucket.ask('DELETE', 'k')
        self.open_bucket(view='deleted')
        refusal = '<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>Not this one.</Message></Error></DeleteResult>'
        self.page.route('**/*delete=*', lambda route: route.fulfill(body=refusal, content_type='application/xml'))
        self.page.get_by_label('Choose k', exact=True).check()
        self.button('Restore 1 object').click()
        self.toast('1 object could not be restored. k: Not this one.')
        self.row('k').wait_for()

    def test_many_objects_are_deleted_only_by_typing_the_bucket_s_name(self):
        for number in range(101):
            self.bucket.put(f'd/{number}')
        self.open_bucket()
        self.page.get_by_label('Choose d/').check()
        self.button('Delete').click()
        sure = self.dialog().get_by_role('button', name='Delete 101 objects')
        sure.wait_for()
        self.assertTrue(sure.is_disabled())
        self.dialog().get_by_label('Type').fill(self.bucket.name)
        sure.click()
        self.toast('101 objects deleted.')
        self.assertEqual(self.bucket.keys(), [])

    def test_versions_are_restored_and_deleted(self):
        self.bucket.set_versioning('Enabled')
        for body in (b'one', b'two', b'three'):
            self.bucket.put('k', body)
        self.open_bucket(object='k')
        self.says('3 versions')
        oldest = self.bucket.versions()[-1][2]
        self.button(f'Restore version {oldest}').click()
        self.says('4 versions')
        self.assertEqual(self.bucket.ask('GET', 'k').body, b'one')
        self.button(f'Delete version {oldest}').click()
        self.dialog().get_by_role('button', name='Delete version').click()
        self.says('3 versions')
        self.assertNotIn(oldest, [row[2] for row in self.bucket.versions()])
        self.page.get_by_role('link', name=self.bucket.versions()[1][2]).click()
        self.says('This is the version')

    def test_an_object_is_deleted_and_comes_back(self):
        self.bucket.set_versioning('Enabled')
        self.bucket.put('dir/k', b'kept')
        self.open_bucket(object='dir/k')
        self.button('Delete').click()
        self.dialog().get_by_text('older ones stay and can be restored').wait_for()
        self.dialog().get_by_role('button', name='Delete object').click()
        self.says('Nothing is here')
        self.assertEqual(self.bucket.ask('GET', 'dir/k').status, 404)
        self.allow('status of 404')
        self.open_bucket(object='dir/k')
        self.page.get_by_role('button', name=re.compile('^Restore version')).click()
        self.page.get_by_role('button', name='Download').wait_for()
        self.assertEqual(self.bucket.ask('GET', 'dir/k').body, b'kept')

    def test_download_and_link_give_the_bytes(self):
        name = 'with "quotes" & ü.txt'
        self.bucket.put(f'dir/{name}', b'the bytes')
        self.open_bucket(object=f'dir/{name}')
        with self.page.expect_download() as download:
            self.button('Download').click()
        with open(download.value.path(), 'rb') as file:
            self.assertEqual(file.read(), b'the bytes')
        self.assertTrue(download.value.suggested_filename.endswith('& ü.txt'))
        self.button('Share').click()
        self.dialog().get_by_label('Works for').select_option('604800')
        said = self.dialog().get_by_text(re.compile(r'It ends on \d+ \w+ 20\d\d'))
        days = [self.in_seven_days(), said.inner_text(), self.in_seven_days()]  # midnight may lie between
        self.assertTrue(days[0] in days[1] or days[2] in days[1], days)
        link = self.dialog().locator('code', has_text='X-Amz-Expires=604800').inner_text()
        self.assertEqual(self.ask('GET', link[len(self.origin):], token=None).body, b'the bytes')
        self.assertEqual(self.ask('DELETE', link[len(self.origin):], token=None).status, 403)

    def test_tags(self):
        self.bucket.put('k')
        self.open_bucket(object='k')
        self.button('Edit tags…').click()
        self.dialog().get_by_label('Key 1').fill('kind')
        self.dialog().get_by_label('Value 1').fill('note')
        self.dialog().get_by_role('button', name='Store tags').click()
        self.says('kind: note')
        self.assertEqual(texts(tree(self.bucket.ask('GET', 'k', query='tagging')), 'TagSet/Tag/Value'), ['note'])

    def test_versioning_and_access(self):
        self.bucket.put('k', b'seen')
        self.open_bucket(view='settings')
        self.page.get_by_role('group', name='Versioning').get_by_role('button', name='On').click()
        self.toast('Versioning is on.')
        self.assertEqual(tree(self.bucket.ask('GET', query='versioning')).findtext('Status'), 'Enabled')
        self.page.get_by_role('group', name='Access').get_by_role('button', name='Public').click()
        self.assertEqual(self.bucket.ask('GET', 'k', token=None).status, 403)
        self.dialog().get_by_label('Type').fill(self.bucket.name)
        self.dialog().get_by_role('button', name='Make public').click()
        self.toast('The bucket is public.')
        self.assertEqual(self.bucket.ask('GET', 'k', token=None).body, b'seen')
        self.page.get_by_role('group', name='Access').get_by_role('button', name='Private').click()
        self.toast('The bucket is private.')
        self.assertEqual(self.bucket.ask('GET', 'k', token=None).status, 403)

    def test_lifecycle_rules(self):
        self.allow('status of 400')
        self.open_bucket(view='settings')
        self.button('Add rule…').click()
        dialog = self.dialog()
        dialog.get_by_label('Prefix').fill('tmp/<&')
        dialog.get_by_label('Objects go after days').fill('soon')
        dialog.get_by_role('button', name='Store rule').click()
        dialog.get_by_text('must be a whole number').wait_for()
        dialog.get_by_label('Objects go after days').fill('7')
        dialog.get_by_label('Unfinished uploads end').fill('2')
        dialog.get_by_role('button', name='Store rule').click()
        self.says('objects go after 7 days; unfinished uploads end after 2 days')
        stored = tree(self.bucket.ask('GET', query='lifecycle'))
        self.assertEqual((stored.findtext('Rule/Filter/Prefix'), stored.findtext('Rule/Expiration/Days')), ('tmp/<&', '7'))
        self.shown('lifecycle')
        self.page.get_by_role('button', name=re.compile('^Edit the rule')).click()
        self.button('Remove this rule').click()
        self.says('No rules')
        self.assertEqual(self.bucket.ask('GET', query='lifecycle').status, 404)

    def test_rules_that_the_form_cannot_show_stay_as_they_are(self):
        text = ('<LifecycleConfiguration><Rule><ID>tagged</ID><Status>Enabled</Status><Filter><Tag><Key>kind</Key><Value>tmp</Value></Tag></Filter>'
                '<Expiration><Days>3</Days></Expiration></Rule></LifecycleConfiguration>')
        self.assertEqual(self.bucket.ask('PUT', query='lifecycle', body=text).status, 200)
        self.open_bucket(view='settings')
        self.says('conditions that only the whole document shows')
        self.button('Add rule…').click()
        self.dialog().get_by_label('Objects go after days').fill('9')
        self.dialog().get_by_role('button', name='Store rule').click()
        self.says('objects go after 9 days')
        stored = tree(self.bucket.ask('GET', query='lifecycle'))
        self.assertEqual((texts(stored, 'Rule/Expiration/Days'), texts(stored, 'Rule/Filter/Tag/Key')), (['3', '9'], ['kind']))
