"""The storage page: what lies there, gc, damage, scrub, and the rules of buckets."""
from tests.support.console import ConsoleCase


class Storage(ConsoleCase):
    def setUp(self):
        super().setUp()
        self.enter()

    def section(self, name):
        return self.page.get_by_role('region', name=name)

    def test_damage_is_named_and_leads_to_the_object(self):
        self.open('#/storage')
        self.says('1 stored chunk is damaged.')
        self.section('Scrub').get_by_role('link', name='files/broken.bin').click()
        self.page.get_by_role('heading', name='broken.bin').wait_for()

    def test_gc_says_first_what_it_would_free(self):
        self.ask('PUT', '/many/doomed', body=bytes(range(256)) * 4000)
        self.ask('DELETE', '/many/doomed')
        self.open('#/storage')
        self.button('Run gc…').click()
        dialog = self.dialog()
        dialog.locator('.dry-run p.soft', has_text='Looking').wait_for(state='detached')
        dialog.get_by_text('within the last day are kept').wait_for()
        self.shown('gc')
        before = self.ask('GET', '/-/storage').json()['gc']['last']
        dialog.get_by_role('button', name='Run gc now').click()
        self.toast('gc finished')
        self.assertNotEqual(self.ask('GET', '/-/storage').json()['gc']['last'], before)
        self.section('Garbage collection').get_by_text('given back').first.wait_for()

    def test_a_scrub_is_started_and_its_end_is_told(self):
        self.open('#/storage')
        last = self.ask('GET', '/-/damage').json()['scrub']['last']['ended']
        self.button('Start scrub…').click()
        self.dialog().get_by_label('At most').fill('fast')
        self.dialog().get_by_role('button', name='Start scrub').click()
        self.dialog().get_by_role('alert').wait_for()
        self.dialog().get_by_label('At most').fill('')
        self.dialog().get_by_role('button', name='Start scrub').click()
        self.toast('Scrub finished: 1 chunk damaged now.')
        self.assertNotEqual(self.ask('GET', '/-/damage').json()['scrub']['last']['ended'], last)

    def test_a_round_of_scrub_that_is_due_begins_by_itself(self):
        def answer(route):
            reply = route.fetch()
            body = reply.json()
            body['scrub'] = {**body['scrub'], 'round': None, 'next': self.next}
            route.fulfill(response=reply, json=body)
        for target in ('storage', 'damage'):
            self.page.route(f'**/-/{target}', answer)
        row = self.page.get_by_role('listitem').filter(has_text='Next round')
        for self.next, said in (('2026-01-02T03:04:05.000Z', 'due: begins by itself'), ('2099-01-02T03:04:05.000Z', 'in ')):
            self.open('#/storage')
            row.get_by_text(said).wait_for()
        self.assertNotIn('due', row.inner_text())

    def test_packs_are_listed_with_their_damage(self):
        self.open('#/storage')
        packs = self.ask('GET', '/-/packs').json()['packs']
        rows = self.section('Packs').locator('tbody tr[data-at]')
        self.count(rows, len(packs))
        self.count(rows.filter(has_text='damaged'), sum(1 for pack in packs if pack['damaged']))

    def test_rules_of_a_bucket_are_changed_here_too(self):
        self.open('#/storage')
        self.page.get_by_label('Bucket whose rules are shown').select_option('many')
        self.button('Add rule…').click()
        self.dialog().get_by_label('Objects go after days').fill('400')
        self.dialog().get_by_role('button', name='Store rule').click()
        self.says('objects go after 400 days')
        self.assertIn(b'<Days>400</Days>', self.ask('GET', '/many?lifecycle').body)

    def test_a_nearly_full_disk_is_shown(self):
        if self.site.disk:
            self.open('#/')
            self.says('MB reserve')
