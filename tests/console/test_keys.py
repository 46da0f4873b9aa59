"""Keys as an operator handles them: made with grants, seen, revoked; sessions that end; the trail of it all."""
import json
import re

from tests.support.browser import PHONE
from tests.support.console import HEADER, RUN, ConsoleCase, Site, address
from tests.support.daemon import ROOT_ID


class Keys(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def setUp(self):
        super().setUp()
        self.enter()

    def row(self, text):
        return self.page.locator('tbody tr[data-at]', has_text=text)

    def add(self, name, bucket, prefix='', *permissions):
        """Fills the form of a new key and gives what is shown once."""
        self.open('#/keys')
        self.button('Add key…').click()
        dialog = self.dialog()
        dialog.get_by_label('Name').fill(name)
        dialog.get_by_label('Bucket').fill(bucket)
        dialog.get_by_label('Prefix').fill(prefix)
        for permission in permissions:
            dialog.get_by_label(permission).check()
        dialog.get_by_role('button', name='Make key').click()
        dialog.get_by_text('shown this once').wait_for()
        return [dialog.locator('.secret-facts code').nth(at).inner_text() for at in range(3)]

    def test_a_key_is_made_works_is_used_and_revoked(self):
        key_id, secret, token = self.add('evaluation', 'files', 'runs/')
        self.shown('key-made')
        self.assertIn(token, self.dialog().locator('pre').inner_text())
        self.dialog().get_by_role('button', name='aws').click()
        self.assertIn(secret, self.dialog().locator('pre').inner_text())
        self.button('I have copied them').click()
        self.row('evaluation').get_by_text('never').wait_for()
        self.row('evaluation').get_by_text('files/runs/=read,list').wait_for()
        self.assertEqual(self.ask('GET', '/files/runs/a/one.bin', token=token).status, 200)
        self.assertEqual(self.ask('GET', '/files/notes.txt', token=token).status, 403)
        visitor = self.new_context().new_page()
        self.enter((key_id, secret), visitor)
        self.open('#/buckets', visitor)
        self.allow('status of 401')
        self.button('Revoke evaluation').click()
        self.dialog().get_by_role('button', name='Revoke key').click()
        self.toast('Key evaluation was revoked.')
        self.gone(self.row('evaluation'))
        self.assertEqual(self.ask('GET', '/files/runs/a/one.bin', token=token).status, 403)
        visitor.get_by_role('link', name='Keys').click()
        visitor.get_by_role('heading', name='Sign in').wait_for()

    def test_no_secret_is_left_when_it_was_shown(self):
        _, secret, token = self.add('once', 'files')
        self.button('I have copied them').click()
        self.gone(self.dialog())
        left = self.page.evaluate('JSON.stringify([{...localStorage}, {...sessionStorage}, document.documentElement.outerHTML])')
        self.assertNotIn(secret, left)
        self.assertNotIn(token, left)
        self.assertNotIn(secret.encode(), self.ask('GET', '/-/keys').body)

    def test_a_new_secret_stays_until_it_was_copied(self):
        self.add('kept', 'files')
        for _ in range(3):  # browsers let the first one be refused, and not the second
            self.page.keyboard.press('Escape')
        self.page.mouse.click(5, 5)
        self.assertTrue(self.dialog().get_by_text('shown this once').is_visible())
        self.count(self.dialog().get_by_role('button', name='Close'), 0)
        self.button('I have copied them').click()
        self.gone(self.dialog())

    def test_the_form_of_a_key_stays_at_a_click_beside_it(self):
        self.open('#/keys')
        self.button('Add key…').click()
        self.dialog().get_by_label('Name').fill('typed')
        self.page.mouse.click(5, 5)
        self.assertEqual(self.dialog().get_by_label('Name').input_value(), 'typed')
        self.page.keyboard.press('Escape')
        self.gone(self.dialog())

    def test_the_builder_says_what_a_grant_covers(self):
        self.open('#/keys')
        self.button('Add key…').click()
        dialog = self.dialog()
        self.assertTrue(dialog.get_by_role('button', name='Make key').is_disabled())
        dialog.get_by_label('Bucket').fill('files')
        dialog.get_by_label('Prefix').fill('runs/')
        dialog.get_by_text('Covers 3 objects, 60.0 kB, and no run.').wait_for()
        self.count(dialog.get_by_text('End it with /'), 0)
        dialog.get_by_label('Prefix').fill('runs/a')
        dialog.get_by_text('Covers 2 objects').wait_for()
        dialog.get_by_text('matches any key that starts with it, runs/a2 too').wait_for()
        self.shown('key-builder')
        dialog.get_by_label('Bucket').fill('models')
        dialog.get_by_label('Prefix').fill('policy/')
        dialog.get_by_text('1 run (policy)').wait_for()
        dialog.get_by_label('Bucket').fill('not-yet')
        dialog.get_by_text('There is no bucket not-yet yet').wait_for()

    def test_a_refused_grant_is_said_and_nothing_is_made(self):
        self.allow('status of 400')
        before = len(self.ask('GET', '/-/keys').json()['keys'])
        self.open('#/keys')
        self.button('Add key…').click()
        self.dialog().get_by_label('Bucket').fill('files*')
        self.dialog().get_by_role('button', name='Make key').click()
        self.dialog().get_by_role('alert').wait_for()
        self.assertEqual(len(self.ask('GET', '/-/keys').json()['keys']), before)

    def test_the_root_key_cannot_be_revoked_here(self):
        self.open('#/keys')
        self.row('root: everything').wait_for()
        self.count(self.row('root: everything').get_by_role('button', name=re.compile('Revoke')), 0)

    def test_a_session_is_ended_from_the_list(self):
        key = self.daemon.add_key('--name', 'other')
        other = self.new_context().new_page()
        self.enter((key['key_id'], key['secret']), other)
        self.open('#/keys?view=sessions')
        self.button(f'End the session of {key["key_id"]}').click()
        self.toast('The session has ended.')
        self.assertEqual(other.context.request.get(self.origin + '/-/session', headers=HEADER).status, 401)
        self.assertEqual(self.context.request.get(self.origin + '/-/session', headers=HEADER).status, 200)

    def test_one_s_own_session_ends_after_a_question(self):
        self.allow('status of 401')
        self.open('#/keys?view=sessions')
        row = self.row('this one')
        row.get_by_text('root', exact=True).wait_for()
        row.get_by_role('button', name='End the session').click()
        self.dialog().get_by_role('button', name='Cancel').click()
        self.assertEqual(self.context.request.get(self.origin + '/-/session', headers=HEADER).status, 200)
        row.get_by_role('button', name='End the session').click()
        self.dialog().get_by_role('button', name='End session').click()
        self.page.get_by_role('heading', name='Sign in').wait_for()

    def test_the_trail_tells_and_is_filtered(self):
        key_id, _, _ = self.add('trailed', 'files')
        self.ask('DELETE', f'/-/keys/{key_id}')
        self.open('#/keys?view=audit')
        self.page.get_by_label('Find in the trail').fill(key_id)
        self.row('key revoked').wait_for()
        self.row('key made').wait_for()
        self.page.get_by_label('Which actions').select_option('key_made')
        self.count(self.row('key revoked'), 0)
        self.row('key made').wait_for()

    def test_the_trail_says_details_in_words(self):
        self.ask('PUT', f'/v1/runs/{RUN}/rollback', body='{"step":2}')
        self.ask('DELETE', f'/v1/runs/{RUN}/rollback')
        self.ask('PUT', f'/v1/runs/{RUN}/pins/best', body='{"step":3}')
        self.ask('DELETE', f'/v1/runs/{RUN}/pins/best')
        self.ask('POST', '/-/gc', body='{"live_percent":70}')
        self.ask('POST', '/-/scrub', body='{"rate":60000}')
        self.ask('PUT', '/files?versioning', body='<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
        self.open('#/keys?view=audit')
        for action, said in (('rolled back', 'to step 2'), ('pin put', 'pin best'), ('gc', 'compacted packs below 70 % in use'),
                             ('scrub', 'at most 60,000 MiB a second'), ('bucket settings', 'versioning'), ('signed in', 'with its secret')):
            self.page.get_by_role('row').filter(has=self.page.get_by_text(action, exact=True)).get_by_text(said, exact=True).first.wait_for()
        self.assertNotIn('{"', self.page.inner_text('main'))

    def test_the_trail_says_what_it_does_not_know_by_name_and_value(self):
        entry = {'id': 9, 'time': '2026-01-02T03:04:05.000Z', 'key_id': 'DBK', 'address': '192.0.2.7', 'subject': 'thing', 'request_id': 'r'}
        details = ({'action': 'later', 'detail': '{"some_member":3,"other":true,"deep":{"a":null}}'}, {'action': 'gc', 'detail': '{"dry_run":{},"new":"word"}'},
                   {'action': 'key_made', 'detail': '{"rate":1}'}, {'action': 'rollback', 'detail': '{"step":4,'})
        page = json.dumps({'entries': [{**entry, 'id': at, **one} for at, one in enumerate(details)]})
        self.page.route('**/-/audit*', lambda route: route.fulfill(body=page, content_type='application/json'))
        self.open('#/keys?view=audit')
        for said in ('some_member: 3, other: yes, deep: {"a":null}', 'dry_run: {}, new: word', 'named {"rate":1}', '{"step":4,'):
            self.page.get_by_text(said, exact=True).wait_for()

    def test_the_trail_fits_a_phone_with_all_it_says(self):
        self.page.set_viewport_size(PHONE)
        self.ask('PUT', f'/v1/runs/{RUN}/rollback', body='{"step":1}')
        self.ask('DELETE', f'/v1/runs/{RUN}/rollback')
        self.open('#/keys?view=audit')
        card = self.page.get_by_role('listitem').filter(has=self.page.get_by_text('rolled back', exact=True)).first
        for said in (RUN, 'to step 1', ROOT_ID, 'from 127.0.0.1'):
            self.assertTrue(card.get_by_text(said).first.is_visible(), said)
        self.shown('audit-phone')

    def test_the_grants_of_keys_fit_a_phone(self):
        self.page.set_viewport_size(PHONE)
        grant = 'files/a/prefix/that/is/longer/than/a/phone/is/wide/=read,list'
        self.daemon.add_key('--name', 'long', '--grant', grant)
        self.open('#/keys')
        card = self.page.get_by_role('listitem').filter(has_text='long')
        self.assertTrue(card.get_by_text(grant).evaluate("tag => tag.getBoundingClientRect().right < tag.closest('li').getBoundingClientRect().right"))
        card.get_by_text('never used').wait_for()
        card.get_by_role('button', name='Revoke long').click()
        self.dialog().get_by_role('button', name='Revoke key').click()
        self.gone(card)


class Grants(ConsoleCase):
    """What keys with few rights see: what they may, said plainly, and no control that they may not use."""

    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def test_a_key_for_workers(self):
        self.enter(self.site.key('workers'))
        self.open('#/')
        self.says('policy')
        self.open('#/runs')
        self.says('policy')
        self.open('#/buckets')
        self.says('models')
        for absent in ('files', 'many', 'Make bucket…'):
            self.count(self.page.locator('main').get_by_text(absent, exact=True), 0)
        self.page.get_by_role('link', name='models').click()
        self.page.get_by_role('heading', name='models').wait_for()
        self.assertIn('prefix=policy', self.page.url)
        self.page.locator('tbody tr[data-at]').first.wait_for()
        for absent in ('Upload files', 'Settings'):
            self.count(self.page.get_by_text(absent, exact=True), 0)
        self.shown('limited-bucket')
        self.count(self.page.get_by_role('navigation', name='Pages').get_by_role('link', name='Storage'), 0)
        self.open('#/storage')
        self.says('Your key sees nothing of the storage')
        self.shown('limited-storage')
        self.open('#/keys')
        self.says('models/policy/=read,list')
        for absent in ('Add key…', 'Audit trail', 'watcher'):
            self.count(self.page.get_by_text(absent, exact=True), 0)
        self.shown('limited-keys')

    def test_what_it_may_not_see_is_refused_and_said(self):
        self.allow('status of 403')
        self.enter(self.site.key('workers'))
        for where in (address('buckets', 'files'), address('buckets', 'files', object='notes.txt'), address('buckets', 'files', view='usage')):
            self.open(where)
            self.page.get_by_role('alert').first.wait_for()
            self.assertNotIn('notes, 2', self.page.inner_text('body'))

    def test_a_place_that_it_may_not_list_leads_to_those_that_it_may(self):
        self.allow('status of 403')
        self.enter(self.site.key('workers'))
        for query in ({}, {'view': 'usage'}, {'view': 'deleted'}):
            self.open(address('buckets', 'models', **query))
            self.says('Your key may list these folders')
            self.count(self.page.get_by_role('alert'), 0)
            self.page.get_by_role('link', name='policy/').click()
            self.says({'usage': 'Objects below here', 'deleted': 'Nothing here was deleted'}.get(query.get('view'), 'entries'))

    def test_a_key_that_writes_below_a_prefix(self):
        self.enter(self.site.key('writer'))
        self.open(address('buckets', 'files', prefix='runs/'))
        self.page.get_by_label('Files to upload').set_input_files({'name': 'new.txt', 'mimeType': 'text/plain', 'buffer': b'new'})
        self.says('1 upload done')
        self.assertEqual(self.ask('GET', '/files/runs/new.txt').body, b'new')
        self.page.get_by_label('Choose new.txt').check()
        self.button('Delete').click()
        self.dialog().get_by_role('button', name='Delete 1 object').click()
        self.toast('1 object deleted.')

    def test_a_key_that_lists_all_and_writes_below_may_delete_there(self):
        key = self.daemon.add_key('--name', 'below', '--grant', 'files=read,list', '--grant', 'files/runs/=write')
        self.ask('PUT', '/files/runs/mine/x', body=b'x')
        self.enter((key['key_id'], key['secret']))
        self.open(address('buckets', 'files'))
        self.page.get_by_label('Choose runs/').check()
        self.button('Delete').click()
        self.dialog().get_by_role('button', name=re.compile(r'^Delete \d+ objects')).wait_for()
        self.dialog().get_by_role('button', name='Cancel').click()

    def test_a_key_for_metrics(self):
        self.enter(self.site.key('watcher'))
        self.open('#/storage')
        self.says('Packs')
        for absent in ('Run gc…', 'Start scrub…', 'File'):
            self.count(self.page.get_by_text(absent, exact=True), 0)
        self.open('#/buckets')
        self.says('Your key reaches no bucket')
        self.shown('limited-buckets')
