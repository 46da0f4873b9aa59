"""The page of a run: what is seen there, what can be changed there and how it asks before, and that a key sees what its grants allow."""
import os
import re

from tests.support.checkpoints import expand_small
from tests.support.browser import PHONE
from tests.support.console import RUN, ConsoleCase, Site, address

BUCKET, NAME = RUN.split('/')
HOSTILE = '<img src=x onerror=alert(1)>'
# Where a canvas has something blue, as the accent is: how many pixels, and where they lie from left to right in the mean.
INKED = '''canvas => {
    const { width, height } = canvas, { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
    let n = 0, sum = 0
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 2] - data[at] > 60 && data[at + 3] > 60) { n++; sum += at / 4 % width }
    }
    return n && { n, x: sum / n / width }
}'''


def place(*rest, **query):
    return address('runs', BUCKET, NAME, *rest, **query)


class RunPage(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=60)

    def setUp(self):
        super().setUp()
        self.enter()

    def run_now(self):
        return self.ask('GET', f'/v1/runs/{RUN}').json()

    def field(self, label):
        return self.page.get_by_label(label, exact=True)

    def confirm(self, name):
        """Presses the button of the dialog, and waits until it is closed."""
        self.dialog().get_by_role('button', name=name, exact=True).click()
        self.gone(self.dialog())

    def test_a_pin_is_made_moved_and_removed(self):
        self.open(place('pins'))
        self.says('No pins')
        self.button('Pin a step…').click()
        self.field('Name').fill('eval')
        self.field('Step').fill('2')
        self.field('Keep for (days)').fill('1.5')
        self.confirm('Pin the step')
        row = self.page.locator('tbody tr', has_text='eval')
        row.wait_for()
        pin = self.ask('GET', f'/v1/runs/{RUN}/pins/eval').json()
        self.assertEqual(pin['step'], 2)
        self.assertIsNotNone(pin['expires'])
        self.button('Move pin eval').click()
        self.field('Step').fill('3')
        self.confirm('Move the pin')
        row.locator('td', has_text='never').wait_for()
        self.assertEqual(self.ask('GET', f'/v1/runs/{RUN}/pins/eval').json()['step'], 3)
        self.button('Remove pin eval').click()
        self.confirm('Remove the pin')
        self.says('No pins')
        self.assertEqual(self.ask('GET', f'/v1/runs/{RUN}/pins/eval').status, 404)

    def test_the_fleet_is_held_at_a_step_and_goes_forward(self):
        self.open(place())
        self.button('Roll back…').click()
        self.field('To step').fill('2')
        self.button('Cancel').click()
        self.gone(self.dialog())
        self.assertNotIn('rollback', self.run_now())
        self.button('Roll back…').click()
        self.field('To step').fill('2')
        self.confirm('Roll back')
        self.says('All workers are held at step')
        self.assertEqual(self.run_now()['rollback']['step'], 2)
        self.page.get_by_role('link', name='Workers').click()
        self.page.get_by_role('columnheader', name='Not there yet').wait_for()
        self.button('Go forward').click()
        self.confirm('Go forward')
        self.count(self.page.locator('.notice'), 0)
        self.assertNotIn('rollback', self.run_now())

    def test_a_refusal_stays_in_the_dialog(self):
        self.allow('status of 404')
        self.open(place())
        self.button('Roll back…').click()
        self.field('To step').fill('99')
        self.dialog().get_by_role('button', name='Roll back', exact=True).click()
        self.dialog().get_by_role('alert').wait_for()
        self.assertIn('99', self.dialog().get_by_role('alert').inner_text())
        self.page.keyboard.press('Escape')
        self.gone(self.dialog())
        self.assertNotIn('rollback', self.run_now())

    def test_a_fork_begins_at_a_step(self):
        self.open(place('steps', '0'))
        self.button('Fork…').click()
        self.field('Name of the new run').fill('branch')
        self.confirm('Make the run')
        self.page.get_by_role('heading', name='models/branch').wait_for()
        self.says('Forked from')
        self.assertEqual(self.ask('GET', '/v1/runs/models/branch').json()['parent']['step'], 0)
        self.open(address('runs', 'models', 'branch', 'settings'))
        self.button('End the run…').click()
        end = self.dialog().get_by_role('button', name='End the run', exact=True)
        self.assertTrue(end.is_disabled())
        self.dialog().get_by_role('textbox').fill('branch')
        end.click()
        self.page.get_by_role('heading', name='Runs').wait_for()
        self.assertEqual(self.ask('GET', '/v1/runs/models/branch').status, 404)

    def test_settings_change_once_they_are_confirmed(self):
        before = self.run_now()['settings']
        self.open(place('settings'))
        self.field('Steps to keep').fill('32')
        self.field('Decode and prove each published step').uncheck()
        self.button('Save').click()
        said = self.dialog().inner_text()
        for text in ('keep_steps', '64', '32', 'Removed steps do not come back', 'verify', 'no longer proven'):
            self.assertIn(text, said)
        self.assertEqual(self.run_now()['settings'], before)
        self.confirm('Change')
        self.toast('The settings are changed.')
        self.assertEqual(self.run_now()['settings'], {**before, 'keep_steps': 32, 'verify': False})
        self.ask('PUT', f'/v1/runs/{RUN}/settings', body='{"keep_steps":64,"verify":true}')

    def test_edits_survive_a_look_at_another_tab(self):
        self.open(place('settings'))
        self.field('Steps to keep').fill('48')
        self.page.get_by_role('link', name='Pins').click()
        self.says('A pin keeps a step')
        self.page.get_by_role('link', name='Settings').click()
        self.says('1 change not saved')
        self.assertEqual(self.field('Steps to keep').input_value(), '48')
        self.field('Lease in seconds').fill('5')
        self.button('Save').click()
        self.assertFalse(self.field('Lease in seconds').evaluate('field => field.validity.valid'))
        self.count(self.dialog(), 0)

    def test_the_way_of_a_worker_is_a_picture_and_words(self):
        self.open(place('workers', worker='node-01:3'))  # at step 3, of 4
        figure = self.dialog().locator('figure')
        figure.wait_for()
        self.assertRegex(figure.inner_text(), r'From step 3 to step 4: [0-9.]+ kB in 1 link')
        self.assertEqual(figure.locator('svg path.delta').count(), 1)
        self.shown('worker')
        self.open(place('ways'))
        self.says('From nothing to step 4')
        self.field('From step').fill('0')
        self.says('From step 0 to step 4')

    def test_workers_by_keyboard(self):
        self.open(place('workers'))
        rows = self.page.locator('tbody tr[data-at]')
        rows.first.wait_for()
        self.page.keyboard.press('/')
        self.page.keyboard.type('node-05')
        self.count(rows, 8)
        self.page.keyboard.press('Escape')
        self.page.locator('.table-foot', has_text=re.compile(r'60 workers\. Oldest report: (\d|now)')).wait_for()
        cells = [row.split('\t') for row in self.page.locator('tbody tr[data-at]').all_inner_texts()]
        ranks = [(row[1].strip() == 'Error', int(row[3])) for row in cells]
        self.assertEqual(ranks, sorted(ranks, reverse=True))
        rows.first.focus()
        for _ in range(3):
            self.page.keyboard.press('ArrowDown')
        focused = self.page.locator('tbody tr:focus')
        focused.and_(self.page.locator('[data-at="3"]')).wait_for()
        name = focused.locator('td').first.inner_text()
        self.page.keyboard.press('Enter')
        self.dialog().get_by_role('heading', name=name).wait_for()
        self.page.keyboard.press('Escape')
        self.gone(self.dialog())
        self.page.keyboard.press('End')
        self.page.locator('tbody tr:focus[data-at="59"]').wait_for()

    def test_figures_filter_and_what_failed_comes_first(self):
        self.site.report([9], state='error', error='The disk is full.')
        self.open(place('workers'))
        self.page.locator('tbody tr[data-at="0"]', has_text='Error').wait_for()
        figure = self.page.locator('button.figure', has_text='Error')
        figure.click()
        self.assertEqual(figure.get_attribute('aria-pressed'), 'true')
        self.assertEqual(self.page.locator('tbody tr[data-at]').count(), int(figure.locator('.figure-value').inner_text()))
        figure.click()
        self.page.locator('.table-foot').get_by_text('60 workers', exact=True).wait_for()
        self.assertEqual(figure.get_attribute('aria-pressed'), 'false')

    def test_runs_tell_their_workers_on_a_phone_too(self):
        self.page.set_viewport_size(PHONE)
        self.open('#/runs')
        row = self.page.locator('tbody tr[data-at]', has_text=RUN)
        short = row.locator('td', has_text='/ 60').filter(visible=True)
        self.assertRegex(short.inner_text(), r'^\d+ / 60$')
        self.shown('runs-phone')

    def test_a_fleet_that_is_lost_is_not_up_to_date(self):
        def lose(route):
            reply = route.fetch()
            body = reply.json()
            for run in body['runs']:
                run['fleet'] = {**run['fleet'], 'states': {state: 0 for state in run['fleet']['states']}, 'expired': 60, 'behind': 0, 'lag_steps': 0, 'lag_seconds': 0}
            route.fulfill(response=reply, json=body)
        self.page.route('**/v1/runs?*', lose)
        self.open('#/runs')
        row = self.page.locator('tbody tr[data-at]', has_text=RUN)
        row.get_by_text('/ 60').filter(visible=True).wait_for()
        self.assertNotIn('up to date', row.inner_text())

    def test_a_step_without_a_base_promises_nothing(self):
        self.open(place('steps', '0'))
        self.count(self.page.get_by_text('Nothing to compare with: this step is whole.'), 2)  # in the facts, and where the map would be

    def test_an_unknown_tab_marks_the_one_that_is_shown(self):
        self.open(place('nothing'))
        self.assertIn('Steps', self.page.locator('.tabs [aria-current]').inner_text())

    def test_what_failed_is_shown_and_what_is_hostile_stays_text(self):
        self.site.report([7], state='error', host=HOSTILE, error=f'"><script>alert(2)</script> {HOSTILE}')
        self.open(place('workers'))
        self.button('Failed').click()
        row = self.page.locator('tbody tr', has_text='node-00:7')
        row.get_by_text('alert(2)').wait_for()
        self.assertEqual(self.page.locator('img[src=x]').count(), 0)
        row.click()
        self.dialog().get_by_text(HOSTILE, exact=True).wait_for()

    def test_a_new_step_appears_by_itself(self):
        folder = os.path.join(self.daemon.scratch, 'more')
        os.mkdir(folder)
        model = os.path.join(folder, 'model.safetensors')
        first, second = expand_small(folder, 1)
        os.replace(first, model)
        self.daemon.client('publish', '--run', 'models/growing', model)
        self.open(address('runs', 'models', 'growing'))
        self.page.evaluate('window.same = true')
        row = self.page.locator('tbody tr[data-at="0"]')
        self.assertEqual(row.locator('td').first.inner_text(), '0')
        os.replace(second, model)
        self.daemon.client('publish', '--run', 'models/growing', '--label', HOSTILE, model)
        row.locator('td', has_text=HOSTILE).wait_for()
        row.locator('td', has_text='Proven').wait_for()
        self.assertEqual(row.locator('td').first.inner_text(), '1')
        self.assertTrue(self.page.evaluate('window.same'))

    def test_a_chart_with_a_single_point_shows_it(self):
        model = os.path.join(self.daemon.scratch, 'model.safetensors')
        os.replace(next(iter(expand_small(self.daemon.scratch, 0))), model)
        self.daemon.client('publish', '--run', 'models/lone', model)
        self.open(address('runs', 'models', 'lone'))
        self.says('Nothing to compare with: each of these steps is whole.')
        canvas = self.page.locator('.chart-panel', has_text='Publish duration').locator('canvas')
        canvas.wait_for()
        drawn = self.page.wait_for_function(INKED, arg=canvas.element_handle()).json_value()
        self.assertGreater(drawn['n'], 8)
        self.assertAlmostEqual(drawn['x'], 0.58, delta=0.03)  # the middle of the plot, which begins right of its axis
        self.shown('lone')

    def test_a_key_that_may_read_is_offered_no_change(self):
        self.page = self.new_context().new_page()
        self.enter(self.site.key('workers'))
        self.open('#/runs')
        self.assertEqual(self.page.locator('tbody tr[data-at]').count(), 1)
        self.open(place('settings'))
        self.assertTrue(self.field('Steps to keep').is_disabled())
        for name in ('Save', 'Roll back…', 'Fork…', 'End the run…'):
            self.assertEqual(self.button(name).count(), 0, name)
        self.open(place('pins'))
        self.assertEqual(self.button('Pin a step…').count(), 0)
        self.open()
        self.assertEqual(self.page.get_by_text('Disk', exact=True).count(), 0)

    def test_a_key_that_may_see_nothing_sees_nothing(self):
        self.allow('status of 40[34]')
        self.page = self.new_context().new_page()
        self.enter(self.site.key('writer'))
        self.open('#/runs')
        self.says('No runs yet')
        self.open(place())
        self.page.get_by_role('alert').wait_for()
