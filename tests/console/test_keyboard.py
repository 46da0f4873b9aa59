"""The console without a mouse: every main thing is reached, done and left by keys, and the focus is where a person looks."""
from tests.support.console import ConsoleCase, Site, address
from tests.support.daemon import ROOT_ID, ROOT_SECRET

FOCUSED = '''() => {
    const at = document.activeElement
    return (at.getAttribute('aria-label') || (at.labels && at.labels[0] && at.labels[0].textContent) || at.textContent || '').trim()
}'''
STOPS_MAX = 80


class Keyboard(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, name, back=False):
        """Presses Tab until the control of this name has the focus, which must be seen."""
        for _ in range(STOPS_MAX):
            self.press('Shift+Tab' if back else 'Tab')
            if self.page.evaluate(FOCUSED) == name:
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                self.assertNotEqual(outline, 'none', f'the focus on {name} is not seen')
                return
        self.fail(f'Tab does not lead to {name}')

    def test_signing_in_and_out(self):
        self.open()
        self.tab_to('Key id')
        self.page.keyboard.type(ROOT_ID)
        self.press('Tab')
        self.page.keyboard.type(ROOT_SECRET)
        self.press('Enter')
        self.page.get_by_role('heading', name='Overview').wait_for()
        self.tab_to('Your key, and sign out')
        self.press('Enter')
        self.tab_to('Sign out')
        self.press('Enter')
        self.page.get_by_role('heading', name='Sign in').wait_for()

    def test_the_first_stop_skips_to_the_page(self):
        self.enter()
        self.open('#/buckets')
        self.press('Tab')
        self.assertEqual(self.page.evaluate(FOCUSED), 'Skip to the page')
        self.press('Enter')
        self.assertEqual(self.page.evaluate('document.activeElement.id'), 'main')

    def test_from_the_list_of_buckets_to_an_object_and_back(self):
        self.enter()
        self.open('#/buckets')
        self.tab_to('Find a bucket')
        self.press('Tab')
        while self.page.evaluate("document.activeElement.tagName") != 'TR':
            self.press('Tab')
        self.press('Enter')  # files, the first
        self.page.locator('tbody tr[data-at]', has_text='broken.bin').wait_for()
        self.press('/')
        self.assertEqual(self.page.evaluate(FOCUSED), 'Search this folder and below')
        self.page.keyboard.type('notes')
        self.page.locator('tbody tr[data-at]', has_text='notes.txt').wait_for()
        self.count(self.page.locator('tbody tr[data-at]'), 1)
        while self.page.evaluate("document.activeElement.tagName") != 'TR':
            self.press('Tab')
        self.press('Enter')
        self.page.get_by_role('heading', name='notes.txt').wait_for()
        self.page.go_back()
        self.page.get_by_role('heading', name='files').wait_for()

    def test_choosing_and_deleting(self):
        self.ask('PUT', '/files/keyboard/x', body=b'x')
        self.enter()
        self.open(address('buckets', 'files', prefix='keyboard/'))
        self.tab_to('Choose x')
        self.press('Space')
        self.tab_to('Delete', back=True)
        self.press('Enter')
        self.dialog().wait_for()
        self.press('Escape')
        self.gone(self.dialog())
        self.assertEqual(self.ask('GET', '/files/keyboard/x').status, 200)
        self.assertEqual(self.page.evaluate(FOCUSED), 'Delete')
        self.press('Enter')
        self.tab_to('Delete 1 object')
        self.press('Enter')
        self.toast('1 object deleted.')
        self.assertEqual(self.ask('GET', '/files/keyboard/x').status, 404)

    def test_the_focus_stays_in_a_dialog(self):
        self.enter()
        self.open('#/keys')
        self.tab_to('Add key…')
        self.press('Enter')
        self.dialog().wait_for()
        seen = set()
        for _ in range(40):
            self.press('Tab')
            if self.page.evaluate("document.activeElement !== document.body"):
                self.assertTrue(self.page.evaluate("Boolean(document.activeElement.closest('dialog'))"), self.page.evaluate(FOCUSED))
                seen.add(self.page.evaluate(FOCUSED))
        for name in ('Name', 'Bucket', 'Prefix', 'Read', 'Write', 'Cancel', 'Close'):
            self.assertIn(name, seen)

    def test_a_key_is_made(self):
        self.enter()
        self.open('#/keys')
        self.tab_to('Add key…')
        self.press('Enter')
        self.page.keyboard.type('by keys')
        self.tab_to('Bucket')
        self.page.keyboard.type('files')
        self.tab_to('Write')
        self.press('Space', 'Enter')
        self.dialog().get_by_text('shown this once').wait_for()
        made = self.ask('GET', '/-/keys').json()['keys']
        self.assertIn(['files=read,write,list'], [key['grants'] for key in made if key['name'] == 'by keys'])
