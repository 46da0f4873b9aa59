"""Signing in, out, and what ends a session."""
import json

from tests.support.console import HEADER, ROOT, ConsoleCase, Site
from tests.support.daemon import ROOT_ID, ROOT_SECRET, ROOT_TOKEN, other_letter


class SignIn(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def fill(self, key, secret):
        self.page.get_by_label('Key id').fill(key)
        self.page.get_by_label('Secret').fill(secret)
        self.button('Sign in').click()

    def test_a_key_and_its_secret(self):
        self.open()
        self.assertEqual(self.page.locator('h1').inner_text(), 'Sign in')
        self.shown('sign-in')
        self.fill(ROOT_ID, ROOT_SECRET)
        self.page.get_by_role('heading', name='Overview').wait_for()
        cookie, = self.context.cookies()
        self.assertEqual((cookie['name'], cookie['httpOnly'], cookie['sameSite'], cookie['secure']), ('__Host-deltabucket_session', True, 'Strict', True))
        self.page.reload()
        self.page.get_by_role('heading', name='Overview').wait_for()

    def test_a_token(self):
        self.open()
        self.button('Token').click()
        self.page.get_by_label('Token').last.fill(ROOT_TOKEN)
        self.button('Sign in').click()
        self.page.get_by_role('heading', name='Overview').wait_for()

    def test_a_link_opens_once(self):
        url = self.ask('POST', '/-/session-links').json()['url']
        self.page.goto(url)
        self.page.get_by_role('heading', name='Overview').wait_for()
        self.assertNotIn('link', self.page.url)
        other = self.new_context().new_page()
        self.allow('status of 40[0-9]')
        other.goto(url)
        other.get_by_role('heading', name='Sign in').wait_for()
        other.locator('.notice').wait_for()

    def test_a_wrong_secret_is_said(self):
        self.allow('status of 401')
        self.open()
        self.fill(ROOT_ID, other_letter(ROOT_SECRET, 3))
        self.page.get_by_role('alert').wait_for()
        self.assertEqual(self.page.locator('h1').inner_text(), 'Sign in')
        self.assertEqual(self.context.cookies(), [])
        self.fill(ROOT_ID, ROOT_SECRET)
        self.page.get_by_role('heading', name='Overview').wait_for()

    def test_no_secret_stays_in_the_page(self):
        self.open()
        self.fill(ROOT_ID, ROOT_SECRET)
        self.page.get_by_role('heading', name='Overview').wait_for()
        kept = self.page.evaluate('JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, document.documentElement.outerHTML])')
        self.assertNotIn(ROOT_SECRET, kept)
        self.assertNotIn(ROOT_TOKEN, kept)

    def test_signing_out_ends_the_session_for_good(self):
        self.enter()
        cookies = self.context.cookies()
        self.open()
        self.button('Your key, and sign out').click()
        self.button('Sign out').click()
        self.page.get_by_role('heading', name='Sign in').wait_for()
        self.assertEqual(self.context.cookies(), [])
        self.context.add_cookies(cookies)  # somebody kept it
        self.assertEqual(self.context.request.get(self.origin + '/-/session', headers=HEADER).status, 401)

    def test_the_tabs_of_a_browser_follow_one_another(self):
        self.allow('status of 401')
        self.open()
        other = self.context.new_page()
        self.open('#/buckets', other)
        self.fill(ROOT_ID, ROOT_SECRET)
        other.get_by_role('heading', name='Buckets').wait_for()
        self.button('Your key, and sign out').click()
        self.button('Sign out').click()
        other.get_by_role('heading', name='Sign in').wait_for()

    def test_a_revoked_key_ends_its_session_where_it_stands(self):
        self.allow('status of 401')
        key = self.daemon.add_key('--name', 'visitor')
        self.enter((key['key_id'], key['secret']))
        self.open('#/buckets')
        self.assertEqual(self.ask('DELETE', f'/-/keys/{key["key_id"]}').status, 204)
        self.page.get_by_role('link', name='Keys').click()
        self.page.get_by_role('heading', name='Sign in').wait_for()
        self.says('Your session has ended')

    def test_a_cookie_without_the_header_of_the_console_opens_nothing(self):
        """What a stolen click of a foreign page could send."""
        self.enter()
        for method, target in (('GET', '/-/session'), ('GET', '/-/keys'), ('GET', '/v1/runs'), ('DELETE', '/-/session'), ('POST', '/-/gc')):
            reply = self.context.request.fetch(self.origin + target, method=method)
            self.assertEqual(reply.status, 401, (method, target))

    def test_the_faces_of_clients_do_not_take_the_cookie(self):
        self.enter()
        for target in ('/files?list-type=2', '/files/notes.txt', '/api/whoami-v2', '/'):
            reply = self.context.request.get(self.origin + target, headers=HEADER)
            self.assertIn(reply.status, (401, 403), target)
        self.assertEqual(self.context.request.get(self.origin + '/-/session', headers=HEADER).status, 200)

    def test_a_session_of_another_visitor_cannot_be_made_up(self):
        self.enter()
        cookie, = self.context.cookies()
        value = cookie['value']
        for place in (0, len(value) // 2, len(value) - 1):
            other = self.new_context()
            digit = '1' if value[place] != '1' else '2'  # another number too, not only another case
            other.add_cookies([{**cookie, 'value': value[:place] + digit + value[place + 1:]}])
            self.assertEqual(other.request.get(self.origin + '/-/session', headers=HEADER).status, 401)

    def test_a_session_that_was_stolen_ends_with_the_key(self):
        key = self.daemon.add_key('--name', 'victim')
        self.enter((key['key_id'], key['secret']))
        thief = self.new_context()
        thief.add_cookies(self.context.cookies())
        self.assertEqual(thief.request.get(self.origin + '/-/session', headers=HEADER).status, 200)
        self.ask('DELETE', f'/-/keys/{key["key_id"]}')
        self.assertEqual(thief.request.get(self.origin + '/-/session', headers=HEADER).status, 401)
        reply = thief.request.post(self.origin + '/-/signed-urls', headers={**HEADER, 'Content-Type': 'application/json'},
                                   data=json.dumps({'expires_s': 900, 'requests': [{'method': 'GET', 'bucket': 'files', 'key': 'notes.txt'}]}))
        self.assertEqual(reply.status, 401)
