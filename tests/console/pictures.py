"""Takes the pictures of docs/CONSOLE.md anew, into docs/console: `setup/clients --only browser python3 -m tests.console.pictures`.

With a folder as argument it leaves them there instead, also in dark and at a phone's width, for those that look the pages over.
"""
import json
import os
import sys

from tests.support.browser import DESK, PHONE, Browser
from tests.support.checkpoints import expand_small
from tests.support.console import HEADER, ROOT, RUN, Site, address

HEIGHT = 860
STEPS = 24
PLACES = {
    'overview': ('#/', None), 'run': (address('runs', *RUN.split('/')), None),
    'step': (address('runs', *RUN.split('/'), 'steps', str(STEPS - 1)), 'Changed weights'),
    'workers': (address('runs', *RUN.split('/'), 'workers'), None), 'paths': (address('runs', *RUN.split('/'), 'ways'), None),
    'bucket': (address('buckets', 'files'), None), 'storage': ('#/storage', None), 'keys': ('#/keys', None),
}
LOOKED_AT = {
    'runs': ('#/runs', None), 'pins': (address('runs', *RUN.split('/'), 'pins'), None), 'settings': (address('runs', *RUN.split('/'), 'settings'), None),
    'buckets': ('#/buckets', None), 'deleted': (address('buckets', 'files', view='deleted'), None), 'usage': (address('buckets', 'files', view='usage'), None),
    'bucket-settings': (address('buckets', 'files', view='settings'), None), 'object': (address('buckets', 'files', object='tiny.safetensors'), None),
    'versions': (address('buckets', 'files', object='notes.txt'), None), 'sessions': ('#/keys?view=sessions', None), 'audit': ('#/keys?view=audit', None),
    'damage': ('#/storage', 'Scrub'), 'packs': ('#/storage', 'Packs'), 'work': ('#/', 'Background work'),
}


class LongSite(Site):
    """The site of the tests with a run of 24 steps, and its workers near the end of it."""

    def publish(self):
        for step, path in enumerate(expand_small(self.daemon.scratch, STEPS - 1)):
            model = os.path.join(self.daemon.scratch, 'model.safetensors')
            os.replace(path, model) if step == STEPS - 1 else os.link(path, model)
            self.daemon.client('publish', '--run', RUN, '--create-bucket', model)
            os.remove(model)
        for step in range(STEPS):  # one of the workers, whose report is written below
            self.daemon.client('follow', '--run', RUN, '--into', os.path.join(self.daemon.scratch, 'weights'), '--replica', 'node-00:0', '--step', str(step))

    def report(self, numbers=None, **changes):
        last = STEPS - 1
        for number in range(self.workers):
            report = {'host': f'node-{number // 8:02d}.example', 'state': 'ready', 'step': last, 'pause_ms': 41 + number * 7 % 23}
            if number % 40 == 7:
                report.update(state='error', step=last - 4, error='No space is left on /srv/weights.')
            elif number % 10 == 3:
                report.update(step=last - 1)
            elif number % 10 == 6:
                report.update(state='fetching', step=last - 2, wanted=last)
            self.ask('PUT', f'/v1/runs/{RUN}/replicas/node-{number // 8:02d}:{number % 8}', report)

    def ask(self, method, target, body):
        reply = self.daemon.request(method, target, json.dumps(body))
        assert reply.status // 100 == 2, reply.body

    def live(self):
        """What an operator did, for the trail."""
        self.ask('PUT', f'/v1/runs/{RUN}/pins/eval', {'step': 12})
        self.ask('PUT', f'/v1/runs/{RUN}/rollback', {'step': 21})
        self.daemon.request('DELETE', f'/v1/runs/{RUN}/rollback')
        self.ask('POST', '/-/gc', {'dry_run': True})
        self.ask('PUT', f'/v1/runs/{RUN}/settings', {'keep_steps': 64})


class Camera:
    def __init__(self, browser, site):
        self.site, self.origin = site, site.origin
        context = browser.chromium.new_context(ignore_https_errors=True, viewport={**DESK, 'height': HEIGHT}, reduced_motion='reduce')
        context.add_init_script("if (location.pathname.startsWith('/console/')) localStorage.setItem('deltabucket-signed-in', 'yes')")
        reply = context.request.post(self.origin + '/-/sessions', headers={**HEADER, 'Content-Type': 'application/json'},
                                     data=json.dumps(dict(zip(('key_id', 'secret'), ROOT))))
        assert reply.status == 201, reply.text()
        self.page = context.new_page()

    def take(self, where, heading, path, scheme='light', size=None):
        page = self.page
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size or {**DESK, 'height': HEIGHT})
        page.goto('about:blank')
        page.goto(f'{self.origin}/console/{where}')
        page.locator('h1').wait_for()
        page.wait_for_function("() => !document.querySelector('.wait')")
        if where.endswith('/ways'):
            page.get_by_label('From step', exact=True).fill('3')
            page.get_by_text('From step 3 to step').wait_for()
        for turn in range(40 if where == '#/' else 4):  # rates of some seconds; charts, and what comes behind the page
            if where == '#/':
                self.site.daemon.request('GET', f'/v1/runs/{RUN}')
            page.wait_for_timeout(100 + turn % 5 * 40)
        if heading:
            page.get_by_role('heading', name=heading).first.evaluate('node => node.scrollIntoView()')
            page.wait_for_timeout(200)
        page.screenshot(path=path)


def main(folder=None):
    target = folder or os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'console')
    browser = Browser()
    try:
        with LongSite() as site:
            site.live()
            camera = Camera(browser, site)
            for name, (where, heading) in {**PLACES, **(LOOKED_AT if folder else {})}.items():
                camera.take(where, heading, os.path.join(target, f'{name}.png'))
                if folder:
                    camera.take(where, heading, os.path.join(target, f'{name}-dark.png'), scheme='dark')
                    camera.take(where, heading, os.path.join(target, f'{name}-phone.png'), size=PHONE)
    finally:
        browser.close()


if __name__ == '__main__':
    main(*sys.argv[1:2])
