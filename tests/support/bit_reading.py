"""All that can be read of a store: the questions, made of what its users were told and of what the
sound store says, and one reading of them.

An answer is a status, headers and the SHA-256 of a body, or an error's code, and has to be the same
each time. A reading that meets damage gets other errors in its place.
"""
import collections
import hashlib
import http.client
import json

from tests.support import xet
from tests.support.daemon import ROOT_TOKEN
from tests.support.s3 import quote, texts, tree
from tests.support.signer import Signer

Question = collections.namedtuple('Question', 'method target token kind', defaults=['plain'])
Answer = collections.namedtuple('Answer', 'status headers digest text')

DAMAGED = 'ContentDamaged', 'content_damaged', ''  # codes; '' where a sentence stands instead
CUT = 0  # the status of a reply that ended before its end, or never began
# Of a moment; and a hash that is worked out some time after the file was made.
PASSING = {'date', 'connection', 'x-amz-request-id', 'x-request-id', 'x-amz-id-2', 'keep-alive',
           'x-deltabucket-file-hash'}
TEXT_BYTES = 300  # of a body, for messages
BUCKET = ('', '?list-type=2', '?list-type=2&max-keys=3', '?list-type=2&prefix=w1/&delimiter=/',
          '?versions', '?uploads', '?versioning', '?cors', '?policy', '?publicAccessBlock', '?acl')
RUN = ('', '/steps', '/steps/latest', '/pins', '/webhook', '/path?want=5', '/path?have=0&want=4',
       '/path?have=1&want=5')
HUB_FILES = 'a', 'b/c', 'd'
FILE_PREFIX = '/buckets/main/hub/resolve/'


class Reader:
    """Asks one server over one connection."""

    def __init__(self, daemon, signs=None):
        """`signs`: a key that signs its requests."""
        self.daemon, self.endpoint = daemon, daemon.endpoint
        self.signs = signs
        self.connection = daemon.connect()

    def close(self):
        self.connection.close()

    def read(self, questions):
        """{question: answer}"""
        return {question: self.ask(question) for question in questions}

    def ask(self, question):
        try:
            answer = getattr(self, f'_ask_{question.kind}')(question)
        except (OSError, http.client.HTTPException) as failure:
            self.connection.close()
            return Answer(CUT, (), '', f'{type(failure).__name__}: {failure}')
        headers = tuple((name, value.replace(self.endpoint, '')) for name, value in answer.headers)
        return answer._replace(headers=headers)

    def _ask_plain(self, question):
        return answer_of(self.request(question.method, question.target, token=question.token))

    def _ask_signed(self, question):
        signer = Signer.of(self.daemon, key_id=self.signs['key_id'], secret=self.signs['secret'])
        headers = signer.headers(question.method, question.target)
        return answer_of(self.request(question.method, question.target, headers=headers,
                                      token=None))

    def _ask_chunks(self, question):
        """A file of the Hub by way of its chunks, as its clients read it."""
        asked = Watched(self)
        try:
            cas = xet.Cas(asked, 'main/hub', 'read', connection=self.connection)
            body = cas.download(xet.raw(question.target))
        except (AssertionError, KeyError, ValueError):
            return answer_of(asked.reply)
        return Answer(200, (), hashlib.sha256(body).hexdigest(), '')

    def request(self, method, target, body=None, headers=None, token=ROOT_TOKEN, connection=None):
        return self.daemon.request(method, target, body, headers, token=token,
                                   connection=self.connection)


class Watched:
    """Keeps the last reply: what a reading that goes several ways has failed with."""

    def __init__(self, reader):
        self.reader, self.endpoint = reader, reader.endpoint

    def request(self, *arguments, **options):
        self.reply = self.reader.request(*arguments, **options)
        return self.reply


def same(one, other):
    return one[:3] == other[:3]


def is_error(question, expected, answer):
    """Neither a right answer nor a wrong one. Who may is not always known: then nobody may."""
    if is_passing(answer):
        return True
    return question.token != ROOT_TOKEN and answer.status in (401, 403)


def is_passing(answer):
    is_told = answer.status == 409 and answer.digest in DAMAGED
    return is_told or answer.status == CUT or answer.status >= 500


def answer_of(reply):
    text = reply.body[:TEXT_BYTES].decode(errors='replace')
    if reply.status >= 400:
        return Answer(reply.status, (), code_of(reply), text)
    headers = tuple(sorted((name.lower(), value) for name, value in reply.headers.items()
                           if name.lower() not in PASSING))
    return Answer(reply.status, headers, hashlib.sha256(reply.body).hexdigest(), text)


def code_of(reply):
    """'' where the Hub's faces say a sentence."""
    is_sentence = reply.body.startswith(b'{"error":"')
    return '' if is_sentence else str(reply.code())


def questions_of(store, reader):
    """`reader` asks the sound store."""
    asked = [Question('GET', '/', ROOT_TOKEN)]
    for bucket in texts(tree(reader.request('GET', '/')), 'Buckets/Bucket/Name'):
        if bucket != 'used':
            asked += [Question('GET', f'/{bucket}{query}', ROOT_TOKEN) for query in BUCKET]
    for fact in sorted(store.facts):
        asked += question_of_fact(fact, store.facts[fact])
    return asked + of_hub(reader) + of_callers(store) + of_runs(reader)


def question_of_fact(fact, value):
    kind, *words = fact
    targets = {'object': '/{}/{}', 'version': '/{}/{}?versionId={}', 'setting': '/{}?{}',
               'bucket': '/{}?location', 'upload': '/{}/{}?uploadId={}',
               'step': '/v1/runs/{}/steps/{}?tensors=true'}
    if kind == 'key':
        return [Question('GET', '/', value['token'])]
    target = targets[kind].format(*(quote(word) for word in words))
    methods = ('GET', 'HEAD') if kind in ('object', 'version') else ('GET',)
    return [Question(method, target, ROOT_TOKEN) for method in methods]


def agrees(answer, fact, value):
    """Whether the first answer about a fact says what was confirmed."""
    kind = fact[0]
    if kind == 'key':
        return answer.status == (200 if value['works'] else 403)
    if kind in ('object', 'version') and value:
        return (answer.status, answer.digest) == (200, value['sha256'])
    if kind == 'setting' and value:
        return answer.digest == hashlib.sha256(value.encode()).hexdigest()
    return answer.status == (200 if value else 404)


def of_hub(reader):
    asked = [Question('GET', f'/api/buckets/main/hub{path}', ROOT_TOKEN)
             for path in ('', '/tree?recursive=true')]
    for name in HUB_FILES:
        asked.append(Question('GET', FILE_PREFIX + name, ROOT_TOKEN))
        file_hash = reader.request('HEAD', FILE_PREFIX + name).headers['X-Xet-Hash']
        asked.append(Question('GET', file_hash, ROOT_TOKEN, 'chunks'))
    return asked


def of_callers(store):
    """Who may, and who may not."""
    keys = {**{name: key['token'] for name, key in store.keys.items()}, None: None}
    targets = ('/objects/w0/1', '/objects/w1/1', '/v1/runs/steps/r', '/open/shown/a',
               '/open/hidden/a', '/open?list-type=2')
    asked = [Question('GET', target, token) for token in keys.values() for target in targets]
    asked += [Question('GET', f'/open/shown/a{query}', ROOT_TOKEN) for query in ('', '?tagging')]
    return asked + [Question('GET', '/objects/w0/1', None, 'signed')]


def of_runs(reader):
    asked = [Question('GET', '/v1/runs/steps', ROOT_TOKEN)]
    for run in ('/v1/runs/steps/r', '/v1/runs/steps/viewed'):
        asked += [Question('GET', run + target, ROOT_TOKEN) for target in RUN]
        steps = json.loads(reader.request('GET', f'{run}/steps').body)['steps']
        for path in ('want=5', 'have=0&want=4'):
            links = json.loads(reader.request('GET', f'{run}/path?{path}').body).get('links', ())
            steps += [{'forms': [link['form']]} for link in links]
        urls = {thing['url'] for step in steps for form in step['forms']
                for thing in form.get('objects', ())}
        asked += [Question('GET', f'{run}/{url}', ROOT_TOKEN) for url in sorted(urls)]
    return asked
