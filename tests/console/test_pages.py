"""Each page with everything in sight: no fault, nothing that axe-core finds, nothing wider than a phone; and what changes is seen to change."""
from tests.support.console import RUN, ConsoleCase, address


class Pages(ConsoleCase):
    def setUp(self):
        super().setUp()
        self.enter()

    def visit(self, name, where, *texts):
        self.open(where)
        for text in texts:
            self.says(text)
        self.shown(name)

    def test_overview(self):
        self.visit('overview', '#/', RUN)

    def test_runs(self):
        self.visit('runs', '#/runs', RUN)

    def test_steps_of_a_run(self):
        self.visit('run', address('runs', *RUN.split('/')))

    def test_a_step(self):
        self.visit('step', address('runs', *RUN.split('/'), 'steps', '3'))
        self.page.get_by_role('region', name='Map of changed weights').wait_for()

    def test_workers(self):
        self.visit('workers', address('runs', *RUN.split('/'), 'workers'), 'No space is left')

    def test_ways_pins_and_settings_of_a_run(self):
        for tab in ('ways', 'pins', 'settings'):
            self.visit(tab, address('runs', *RUN.split('/'), tab))

    def test_buckets(self):
        self.visit('buckets', '#/buckets', 'many')

    def test_a_bucket(self):
        self.visit('bucket', address('buckets', 'files'), 'tiny.safetensors')

    def test_usage_and_settings_of_a_bucket(self):
        self.visit('usage', address('buckets', 'files', view='usage'), 'broken.bin')
        self.visit('bucket-settings', address('buckets', 'files', view='settings'), 'Remove bucket')

    def test_an_object(self):
        self.visit('object', address('buckets', 'files', object='tiny.safetensors'), 'a.weight')

    def test_storage(self):
        self.visit('storage', '#/storage', 'files/broken.bin')

    def test_keys(self):
        self.visit('keys', '#/keys', 'watcher')
        self.visit('sessions', '#/keys?view=sessions', '127.0.0.1')
        self.visit('audit', '#/keys?view=audit', 'signed in')

    def test_a_server_that_is_away_is_asked_again(self):
        self.allow('Failed to load resource')
        self.open()
        self.page.route('**/-/buckets*', lambda route: route.abort())
        self.go('#/buckets')
        self.says('The server does not answer. Trying again…')
        self.count(self.page.get_by_text('unreachable'), 0)
        self.page.unroute('**/-/buckets*')
        self.says('many')

    def test_a_page_s_module_that_no_server_gave_is_fetched_again_by_itself(self):
        self.allow('Failed to load resource')
        self.open()
        self.page.route('**/console/**', lambda route: route.abort())
        self.page.get_by_role('link', name='Storage').click()
        self.says('The server does not answer. Trying again…')
        self.page.unroute('**/console/**')
        self.page.get_by_role('heading', name='Storage', exact=True).wait_for()
        self.count(self.page.get_by_role('alert'), 0)

    def test_a_page_s_module_that_the_server_refused_is_fetched_again_at_a_click(self):
        self.allow('Failed to load resource')
        self.open()
        self.page.route('**/pages/storage.js', lambda route: route.fulfill(status=500))
        self.page.get_by_role('link', name='Storage').click()
        self.says('This page could not be fetched from the server.')
        self.count(self.page.get_by_text('Trying again'), 0)
        self.page.unroute('**/pages/storage.js')
        self.button('Try again').click()
        self.page.get_by_role('heading', name='Storage', exact=True).wait_for()

    def test_a_page_that_there_is_not(self):
        self.page.goto(f'{self.origin}/console/#/nowhere')
        self.says('There is no such page')

    def test_a_worker_is_seen_to_change_without_a_reload(self):
        self.open(address('runs', *RUN.split('/'), 'workers'))
        self.page.get_by_label('Filter workers').fill('node-07:3')
        row = self.page.locator('tbody tr', has_text='node-07:3')
        row.wait_for()
        self.page.evaluate('window.same = true')
        for report in ({'state': 'ready', 'step': 2}, {'state': 'error', 'step': 2, 'error': 'The GPU fell off the bus.'}, {'state': 'ready', 'step': 4}):
            self.site.report([59], **report)
            behind = 4 - report['step']
            row.locator('td', has_text='error' if 'error' in report else 'ready').first.wait_for()
            row.locator('td:nth-child(4)', has_text=str(behind)).wait_for()
        self.assertTrue(self.page.evaluate('window.same'))
