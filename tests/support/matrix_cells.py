"""The cells of tests/daemon/test_matrix.py: for each route what it asks of its caller, and a
request that succeeds for those that may."""

import json
import re
import urllib.parse

from tests.support import xet
from tests.support.matrix import ALLOWED, ABSENT, DENIED, DROPPING, NOBODY, UNKNOWN, face_of, judge
from tests.support.signer import form_body

# The rule of each access: the permission, on what, and whether what a bucket gives to everyone
# counts.
RULES = {
    'bucket list': ('list', 'place', True),
    'bucket scan': ('list', 'place', True),
    'bucket runs': ('list', 'bucket', True),
    'bucket settings': ('list', 'bucket', False),
    'bucket admin': ('admin', 'bucket', False),
    'object read': ('read', 'place', True),
    'object write': ('write', 'place', True),
    'object delete': ('write', 'place', True),
    'object tags read': ('read', 'place', False),
    'object tags write': ('write', 'place', False),
    'object admin': ('admin', 'place', False),
    'run read': ('read', 'place', True),
    'run fleet': ('read', 'place', False),
    'run object': ('read', 'place', True),  # a shared URL opens it too: test_shared_urls
    'run write': ('write', 'place', False),
}
SETTINGS = ('Accelerate Analytics IntelligentTiering Inventory Metrics Notification').split()
CONFIGURATIONS = [f'Bucket{name}Configuration' for name in SETTINGS] + [
    'ObjectLockConfiguration',
    'BucketEncryption',
    'BucketLogging',
    'BucketReplication',
    'BucketRequestPayment',
    'BucketWebsite',
]
# What is 501 to whoever has a key.
NOT_THERE = {
    *CONFIGURATIONS,
    'BucketAcl',
    'BucketCors',
    'DeleteObjects',
    'BucketLifecycle',
    'BucketLocation',
    'BucketMetadataConfiguration',
    'BucketMetadataTableConfiguration',
    'BucketOwnershipControls',
    'BucketPolicy',
    'BucketPolicyStatus',
    'PublicAccessBlock',
    'CreateSession',
    'BucketTagging',
    'ListMultipartUploads',
    'BucketVersioning',
    'ListObjectVersions',
    'ObjectAcl',
    'GetObjectAttributes',
    'UpdateObjectEncryption',
    'ObjectLegalHold',
    'MultipartUpload',
    'RenameObject',
    'RestoreObject',
    'ObjectRetention',
    'SelectObjectContent',
    'ObjectTagging',
    'GetObjectTorrent',
    'CreateMultipartUpload',
    "Writing an object under a version's id",
    'MinioAdmin',
    'ListenNotification',
    'ListenBucketNotification',
    'ListDirectoryBuckets',
}
# Sub-resources on the wrong kind of path: refused for themselves, whoever asks.
MISPLACED = {'OfBucket', 'OfKey'}
# The routes by what they ask of their caller.
NAMES = {
    'anyone': (
        'Health Ready GetCa May ConsolePage ConsoleFile SignIn AgentHarnesses NoModel NoDataset NoSpace NoRepository NoLogin ListHubBuckets '
        'NoBucket FetchRecords PostTelemetry Preflight PostObject OfBucket OfKey '
        'MinioLive MinioReady MinioCluster MinioClusterRead MinioMetrics'
    ),
    'metrics': 'Metrics Storage',
    'root': (
        'ListKeys AddKey RevokeKey Gc Scrub Damage ListPacks ListBackupHolds AddBackupHold EndBackupHold '
        'AddSessionLink ListAudit'
    ),
    'signed in': (
        'GetSession SignOut ListSessions EndSession SignUrls HotLoad HotLoadStatus HotLoadHint WhoAmI MoveHubBucket ListRepositories '
        'CreateHubBucket ListBuckets ListKnownBuckets ListAllRuns Overview LiveEvents'
    ),
    'create bucket': 'CreateBucket',
    'bucket known': (
        'HubBucketInfo XetReadToken XetWriteToken ListTree FollowBucket PathsInfo '
        'BucketPage GetBucketLocation HeadBucket'
    ),
    'bucket changes': 'DeleteObjects BatchFiles',
    'bucket list': 'ListMultipartUploads ListObjectVersions ListObjectsV2 ListObjects',
    'bucket scan': 'BucketUsage SearchBucket',
    'bucket runs': 'ListRuns',
    'bucket settings': (
        'GetBucket GetBucketAcl GetBucketCors GetBucketLifecycleConfiguration '
        'GetBucketOwnershipControls GetBucketPolicy GetBucketPolicyStatus '
        'GetPublicAccessBlock GetBucketTagging GetBucketVersioning'
    )
    + ''.join(f' Get{name}' for name in CONFIGURATIONS),
    'bucket admin': (
        'PutBucket DeleteHubBucket HubBucketSettings PutBucketAcl PutBucketCors '
        'DeleteBucketCors PutBucketLifecycleConfiguration DeleteBucketLifecycle '
        'PutBucketOwnershipControls DeleteBucketOwnershipControls PutBucketPolicy '
        'DeleteBucketPolicy PutPublicAccessBlock DeletePublicAccessBlock PutBucketTagging '
        'DeleteBucketTagging PutBucketVersioning DeleteBucket'
    )
    + ''.join(f' {verb}{name}' for name in CONFIGURATIONS for verb in ('Put', 'Delete')),
    'object read': 'ResolveFile GetObjectAttributes GetObject',
    'object write': (
        'UploadPart ListParts CompleteMultipartUpload AbortMultipartUpload '
        'CreateMultipartUpload PutObject'
    ),
    'object delete': 'DeleteObject',
    'object tags read': 'GetObjectLegalHold GetObjectRetention GetObjectTagging',
    'object tags write': 'PutObjectTagging DeleteObjectTagging',
    'object admin': 'GetObjectAcl PutObjectAcl PutObjectLegalHold PutObjectRetention',
    'run read': (
        'RunStatus StepPath ListPins ListFolds GetPin ListSteps LatestStep GetStep '
        'StepChanges'
    ),
    'run object': 'StepObject FoldObject',
    'run write': (
        'OpenRun DeleteRun RunSettings RunWebhook PutPin DeletePin PutRollback DeleteRollback PublishStep PutPart '
        'DeleteStep'
    ),
    'run fleet': 'ListReplicas GetReplica PutReplica DeleteReplica PutChunk',
    'token to read': (
        'GetReconstructionV2 GetReconstruction GetReconstructions PostReconstructions '
        'HeadFile GetChunk HeadXorb'
    ),
    'token to write': 'PostShardV2 PostShard PostXorb PostGrant',
}
def is_missing(route):
    return route.access == 'signed in' and route.name in NOT_THERE


def is_misplaced(route):
    return route.name in MISPLACED


class Cell:
    """One request of one caller. Plans fill it in; `ok` are the statuses of those that may."""

    def __init__(self, world, route, method, bucket, place, caller, variant=''):
        self.world, self.route, self.method, self.caller, self.variant = (
            world,
            route,
            method,
            caller,
            variant,
        )
        self.bucket, self.place = bucket, place
        self.name, self.face = route.name, face_of(route.pattern)
        self.ok, self.codes, self.body, self.headers, self.query = (200,), (), None, {}, {}
        self.parameters, self.key, self.outcome = {}, None, None
        self.before = self.after = self.refusal = self.token = None

    def __repr__(self):
        where = f'{self.bucket.kind}/{self.place}' if self.bucket else '-'
        asked = f'{self.name}: {self.method} {self.route.pattern} {self.variant}'
        return f'{asked} by {self.caller.name} on {where}'

    @property
    def is_allowed(self):
        return self.outcome == ALLOWED

    def fresh(self, name='fresh'):
        """A key of the cell's place that nobody else uses."""
        return f'{self.place or "inside"}/{name}-{next(self.world.count)}'

    def target(self):
        bucket = self.parameters.get('bucket') or (self.bucket and self.bucket.name)
        known = {'bucket': bucket, 'key*': self.key, 'rest*': 'info', 'run': self.place, **self.parameters}
        if '{namespace}/{bucket}' in self.route.pattern:
            known['namespace'], known['bucket'] = bucket.split('--')
        path = re.sub(
            r'\{([^}]+)\}',
            lambda found: urllib.parse.quote(known[found[1]], safe='/'),
            self.route.pattern,
        )
        own = [self.route.query] if self.route.query and self.route.query not in self.query else []
        query = own + [f'{name}={urllib.parse.quote(str(value), safe="")}' if value != '' else name
                       for name, value in self.query.items()]
        return path + ('?' + '&'.join(query) if query else '')


def outcome_by_rule(cell):
    access, caller, bucket = cell.route.access, cell.caller, cell.bucket
    if caller.is_revoked:
        return UNKNOWN
    if access == 'anyone':
        return ALLOWED
    if access in ('signed in', 'metrics', 'root', 'bucket scan') and not caller.token:
        return NOBODY
    if access in ('signed in', 'metrics', 'root'):
        return ALLOWED if access == 'signed in' or caller.is_root else DENIED
    if access == 'bucket known':
        return known_outcome(cell)
    if access == 'bucket changes':
        return changes_outcome(cell)
    verb, subject, shared = RULES[access]
    key = f'{cell.place}/' if subject == 'place' and cell.place else ''
    return judge(
        caller,
        bucket,
        verb,
        key,
        shared,
        cell.variant == 'old' or cell.name == 'ListObjectVersions',
    )


def known_outcome(cell):
    caller, bucket = cell.caller, cell.bucket
    if caller.is_revoked:
        return UNKNOWN
    named = caller.grants is not None and any(name == bucket.name for name, _, _ in caller.grants)
    if bucket.account is None and (named or caller.grants is None):
        return ABSENT
    if caller.has_any(bucket):
        return ALLOWED
    return DENIED if caller.token else NOBODY


def changes_outcome(cell):
    """Some of the bucket is the caller's to change: which of the keys, the handler judges."""
    caller, bucket = cell.caller, cell.bucket
    if not caller.is_revoked and caller.grants is not None:
        may = any(name == bucket.name and 'write' in verbs for name, _, verbs in caller.grants)
        return (ALLOWED if bucket.account else ABSENT) if may else DENIED
    known = known_outcome(cell)
    if known == ALLOWED and not caller.has_any(bucket, 'write'):
        return DENIED if caller.token else NOBODY
    return known


# -- what each route is asked

PLACED = {
    'DeleteObjects',
    'PostObject',
    'BatchFiles',
    'PathsInfo',
    'ResolveFile',
    'HotLoad',
    'HotLoadStatus',
    'May',
    'MoveHubBucket',
    'CreateHubBucket',
}
OLD_VERSIONS = {
    'GetObject': ('GET', 'HEAD'),
    'GetObjectAttributes': ('GET',),
    'GetObjectTagging': ('GET',),
    'GetObjectAcl': ('GET',),
}


def setting(matrix, cell):
    """A setting that is not there is told of in the same way as one that is."""
    cell.ok = (200, 404)


def object_setting(matrix, cell):
    cell.ok = (400,)  # there is no object lock


def change(body='', ok=(200, 204), headers=None):
    def plan(matrix, cell):
        cell.body, cell.ok, cell.headers = body, ok, dict(headers or {})
        return matrix.spare(cell)
    return plan


def fixed(matrix, cell):
    """Settings that this server does not have."""
    cell.body, cell.ok = '<x/>' if cell.method == 'PUT' else None, (204, 400, 501)


def list_prefix(matrix, cell):
    if cell.place:
        cell.query['prefix'] = f'{cell.place}/'
    if cell.name == 'ListObjectsV2':
        cell.query['list-type'] = '2'
        del_marker(cell)


def del_marker(cell):
    cell.route = cell.route._replace(query=None)


def delete_bucket(matrix, cell):
    if cell.is_allowed:
        if cell.bucket.kind != 'private':
            return False
        doomed = cell.parameters['bucket'] = matrix.world.doomed[cell.caller.name][
            DROPPING.index(cell.name)
        ]
        cell.before = lambda: matrix.as_root(
            'POST', f'/api/buckets/{doomed.replace("--", "/")}', b'{}', statuses=(200, 409)
        )
        cell.ok = (204,)
    return True


def create_outcome(cell):
    """Whoever acts for an account makes what is not there, and is told that others have what is."""
    caller = cell.caller
    if caller.is_revoked or not caller.token:
        return UNKNOWN if caller.is_revoked else NOBODY
    return (
        ALLOWED
        if caller.is_root or caller.grants is None or caller.may('admin', cell.bucket, '')
        else DENIED
    )


def create_bucket(matrix, cell):
    own = cell.bucket.account == cell.caller.account and cell.bucket.account
    cell.body = ''
    if cell.bucket.kind == 'absent' and cell.is_allowed:
        return False  # it stays absent; test_who_makes_buckets
    cell.ok = (200,) if own else (409, 400)  # 400: a name of another namespace


def preflight(matrix, cell):
    cell.headers = {'Origin': 'http://example.org', 'Access-Control-Request-Method': 'GET'}
    cell.ok = (404,) if cell.bucket.kind == 'absent' else (403,)  # no bucket has rules


def get_attributes(matrix, cell):
    cell.headers = {'x-amz-object-attributes': 'ETag,ObjectSize,Checksum'}


def put_object(matrix, cell):
    cell.body = 'new bytes'
    if cell.is_allowed:
        cell.key = cell.fresh()


def delete_object(matrix, cell):
    cell.ok = (204,)
    if cell.is_allowed:
        cell.key = cell.fresh()
        cell.before = lambda: matrix.as_root('PUT', f'/{cell.bucket.name}/{cell.key}', b'x')


def tagging(matrix, cell):
    cell.ok = (200, 204)
    if cell.method == 'PUT':
        cell.body = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
    if cell.is_allowed:
        cell.key = cell.fresh()
        cell.before = lambda: matrix.as_root('PUT', f'/{cell.bucket.name}/{cell.key}', b'x')


def put_acl(matrix, cell):
    cell.headers = {'x-amz-acl': 'private'}
    tagging(matrix, cell)
    cell.body = ''


def console_page(matrix, cell):
    cell.ok = (308,)  # to the same with a slash


def console_file(matrix, cell):
    cell.parameters['file*'] = 'index.html'


def open_upload(matrix, cell):
    reply = matrix.as_root('POST', f'/{cell.bucket.name}/{cell.key}?uploads', b'')
    cell.query['uploadId'] = re.search(rb'<UploadId>(.+)</UploadId>', reply.body)[1].decode()


def upload(matrix, cell):
    """The standing upload to whom may not; one of its own to whom may."""
    if cell.bucket.account:
        cell.key, cell.query['uploadId'] = cell.bucket.facts[cell.place, 'upload']
    else:
        cell.query['uploadId'] = 'none'
    cell.ok = (200, 204)
    if cell.name == 'UploadPart':
        cell.query['partNumber'], cell.body = 1, 'part'
    if cell.name == 'CompleteMultipartUpload':
        cell.body = COMPLETE.format('x')
    if cell.is_allowed and cell.name != 'ListParts':
        cell.key = cell.fresh()
        cell.before = lambda: open_and_fill(matrix, cell)


COMPLETE = (
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>'
    '</CompleteMultipartUpload>'
)


def open_and_fill(matrix, cell):
    open_upload(matrix, cell)
    if cell.name == 'CompleteMultipartUpload':
        part = matrix.as_root(
            'PUT',
            f'/{cell.bucket.name}/{cell.key}?partNumber=1&uploadId={cell.query["uploadId"]}',
            b'part',
        )
        cell.body = COMPLETE.format(part.header('etag'))


def post_outcome(cell):
    return judge(cell.caller, cell.bucket, 'write', f'{cell.place}/')


def post_object(matrix, cell):
    cell.ok = (204,)
    cell.codes = (404,) if cell.bucket.account is None else ()  # told of before the form is read
    if cell.is_allowed:
        cell.key = cell.fresh()
    kind, cell.body = form_body({'key': cell.key}, b'content')
    cell.headers = {'Content-Type': kind}


def put_policy(matrix, cell):
    cell.ok = (204,)
    if not matrix.spare(cell):
        return False
    cell.body = json.dumps(
        {
            'Statement': {
                'Effect': 'Allow',
                'Principal': {'AWS': cell.world.owner},
                'Action': 's3:GetObject',
                'Resource': f'arn:aws:s3:::{cell.bucket.name}/none/*',
            }
        }
    )
    return True


def delete_objects_outcome(cell):
    if cell.bucket.account is None and not cell.caller.token:
        return ABSENT
    return changes_outcome(cell)


def delete_objects(matrix, cell):
    """Whoever may write somewhere is refused key by key; others may be refused as a whole or so."""
    may = cell.caller.may('write', cell.bucket, f'{cell.place}/')
    cell.codes = (404,) if cell.bucket.account is None else (200,)
    if cell.is_allowed and may:
        delete_object(matrix, cell)
        cell.ok = (200,)
    cell.body = f'<Delete><Object><Key>{cell.key}</Key></Object></Delete>'
    wanted = b'<Deleted>' if may else b'<Code>AccessDenied</Code>'
    cell.after = lambda reply: [] if wanted in reply.body else [f'{wanted} is due']


def run_of(cell):
    """Of a bucket that is not there, another one's."""
    return cell.bucket.runs.get(cell.place) or cell.world.buckets['private'].runs[cell.place]


def read_run(matrix, cell):
    cell.parameters.update(step='0', name=run_of(cell)['pin'], id=run_of(cell)['replica'])
    if cell.name == 'StepObject':
        cell.parameters['name*'] = 'anchor/model.safetensors'
    if cell.name == 'StepChanges':
        cell.ok = (404,)  # step 0 has no delta to count by; test_console_data
    if cell.name == 'FoldObject':
        cell.parameters.update({'steps': '0-4', 'name*': 'delta/delta.safetensors'})
        cell.ok = (404,)  # none is made; test_replies_to_those_that_may_not


def may_outcome(cell):
    """That of a read of the run, whose existence is not asked."""
    outcome = judge(cell.caller, cell.bucket, 'read', f'{cell.place}/')
    return ALLOWED if cell.caller.is_root else outcome


def may_read(matrix, cell):
    cell.query['path'] = f'/v1/runs/{cell.bucket.name}/{cell.place}/steps/0'
    cell.ok = (204,)


def write_run(body='', ok=(200,)):
    def plan(matrix, cell):
        read_run(matrix, cell)
        cell.parameters['part'] = '0'
        cell.body, cell.ok = (json.dumps(body(cell)) if callable(body) else body), ok
        if cell.is_allowed:
            cell.parameters.update(
                name=f'own-{next(cell.world.count)}', id=f'own-{next(cell.world.count)}'
            )
    return plan


def put_part(matrix, cell):
    write_run(lambda cell: run_of(cell)['part'], ok=(200, 202))(matrix, cell)
    cell.parameters['step'] = '1'
    cell.query['of'] = 2


def put_chunk(matrix, cell):
    write_run('bytes', ok=(404,))(matrix, cell)  # nothing is damaged, so nothing was asked for
    cell.parameters['id'] = 64 * '0'


def delete_step(matrix, cell):
    read_run(matrix, cell)
    cell.ok = (409,)  # it is the head, pinned, and held by a replica: whoever may delete is told so


def delete_run(matrix, cell):
    """A run of the spare bucket, made anew for each."""
    cell.ok = (204, 404)  # 404: another caller's cell has just deleted it
    if not matrix.spare(cell):
        return False
    if cell.is_allowed:
        cell.before = lambda: matrix.as_root('POST', cell.target(), b'')
    return True


def hot_load_outcome(cell):
    """A deployment is an account's: of the caller's, or of the buckets that its grants name."""
    caller, bucket = cell.caller, cell.bucket
    if caller.token and not caller.is_revoked and caller.grants is None:
        return ALLOWED if caller.account == bucket.account else DENIED
    verb = 'write' if cell.method == 'POST' else 'read'
    return judge(caller, bucket, verb, f'{cell.place}/', shared=False)


def hot_load(matrix, cell):
    if cell.outcome == DENIED and (cell.caller.grants is None or not cell.caller.has_any(cell.bucket)):
        cell.refusal = (404, 'no_run')  # as of a deployment that no run has
    if cell.bucket.kind == 'absent':
        return False
    cell.headers = {'fireworks-deployment': run_of(cell)['deployment']}
    if cell.method == 'POST':
        cell.body = json.dumps({'identity': f'snapshot-{next(cell.world.count)}'})
    return True


def settings_of_bucket(matrix, cell):
    cell.body = '{"etag":"default"}'
    return matrix.spare(cell)


def revoke_key(matrix, cell):
    cell.ok = (204,)
    cell.parameters['id'] = cell.world.callers['owner'].key_id
    if cell.is_allowed:
        made = json.loads(matrix.as_root('POST', '/-/keys', b'{}').body)
        cell.parameters['id'] = made['key_id']


def sign_in(matrix, cell):
    cell.headers = {'X-Deltabucket-Console': '1'}
    cell.body = json.dumps({'token': cell.caller.token or 'none'})
    cell.ok = (201,) if cell.caller.token else (401,)


def end_session(matrix, cell):
    cell.parameters['id'] = 64 * '0'
    cell.ok = (404,)


def end_hold(matrix, cell):
    cell.ok = (204,)
    cell.parameters['id'] = 32 * '0'
    if cell.is_allowed:
        held = json.loads(matrix.as_root('POST', '/-/backup-holds', b'{"name":"matrix"}').body)
        cell.parameters['id'] = held['id']


def token_outcome(cell):
    outcome = known_outcome(cell)
    if outcome == ALLOWED and not cell.caller.has_any(cell.bucket, 'write'):
        return DENIED if cell.caller.token else NOBODY
    return outcome


def tree_outcome(cell):
    outcome = known_outcome(cell)
    key = f'{cell.place}/' if cell.place else ''
    return judge(cell.caller, cell.bucket, 'list', key) if outcome == ALLOWED else outcome


def list_tree(matrix, cell):
    cell.parameters['prefix*'] = cell.place


def resolve(matrix, cell):
    cell.parameters['path*'] = cell.key


def paths_info(matrix, cell):
    cell.body = json.dumps({'paths': [cell.key]})
    wanted = b'"xetHash"' if cell.caller.may('read', cell.bucket, f'{cell.place}/') else b'[]'
    cell.after = lambda reply: [] if wanted in reply.body else [f'{wanted} is due']


def batch_outcome(cell):
    outcome = known_outcome(cell)
    return (
        judge(cell.caller, cell.bucket, 'write', f'{cell.place}/')
        if outcome == ALLOWED
        else outcome
    )


def batch_files(matrix, cell):
    if cell.is_allowed:
        delete_object(matrix, cell)
        cell.ok = (200,)
    cell.body = json.dumps({'type': 'deleteFile', 'path': cell.key}) + '\n'


def hub_delete(matrix, cell):
    if not delete_bucket(matrix, cell):
        return False
    cell.ok = (200,)
    return True


def hub_create_outcome(cell):
    caller, bucket = cell.caller, cell.bucket
    if caller.is_revoked or not caller.token:
        return UNKNOWN if caller.is_revoked else NOBODY
    own = caller.is_root or caller.account == bucket.account
    return ALLOWED if own and (caller.grants is None or caller.may('admin', bucket, '')) else DENIED


def hub_create(matrix, cell):
    if cell.bucket.kind == 'absent' or cell.place != 'inside':
        return False
    cell.parameters['owner'], cell.parameters['name'] = cell.bucket.hub.split('/')
    cell.ok, cell.body = (409,), '{}'
    if cell.outcome == DENIED:
        cell.refusal = (403, None)  # by the name alone, whether there is such a bucket or not
    return True


def hub_move_outcome(cell):
    outcome = judge(cell.caller, cell.bucket, 'admin', '', shared=False)
    return (
        DENIED if outcome == ALLOWED and cell.caller.grants else outcome
    )  # its grants do not name the new bucket


def hub_move(matrix, cell):
    if cell.place != 'inside' or (cell.is_allowed and cell.bucket.kind != 'private'):
        return False
    source, new = cell.bucket.hub, f'{cell.world.owner}/moved-{next(cell.world.count)}'
    if cell.is_allowed:
        delete_bucket(matrix, cell)
        source = cell.parameters['bucket'].replace('--', '/')
    cell.ok, cell.body = (200,), json.dumps({'fromRepo': source, 'toRepo': new, 'type': 'bucket'})
    return True


def repositories_outcome(cell):
    outcome = outcome_by_rule(cell)
    other = (
        '{account}' in cell.route.pattern
        and not cell.caller.is_root
        and cell.caller.account != cell.world.owner
    )
    return DENIED if outcome == ALLOWED and other else outcome


def name_owner(matrix, cell):
    cell.parameters.update({'owner': cell.world.owner, 'account': cell.world.owner})


def not_here(matrix, cell):
    cell.ok = (501,)


def nothing(matrix, cell):
    cell.parameters.update({'repository*': 'x/y', 'owner': cell.world.owner})
    cell.ok = (404,)


def hub_settings(matrix, cell):
    cell.body = '{"private":true}'
    return matrix.spare(cell)


def cas_outcome(cell):
    """What is no token of this face opens nothing."""
    if cell.caller.is_revoked:
        return UNKNOWN
    if not cell.token:
        return NOBODY
    return (
        DENIED
        if cell.route.access == 'token to write' and not cell.variant.startswith('write')
        else ALLOWED
    )


def cas(matrix, cell):
    old = cell.variant.endswith('old')
    facts = (
        cell.bucket.facts[(cell.place, 'old') if old else cell.place]
        if cell.bucket
        else {'hash': '1' * 64, 'chunk': '1' * 64}
    )
    cell.parameters.update({'prefix': 'default', 'hash': facts['hash']})
    may = cell.bucket is None or cell.caller.may(
        'read', cell.bucket, f'{cell.place}/', versions=old
    )
    cell.ok = (200,) if may else (404,)
    if cell.name == 'GetReconstructions':
        cell.ok, cell.query['file_id'] = (200,), facts['hash']
    if cell.name == 'PostReconstructions':
        cell.ok, cell.body = (200,), json.dumps([{'hash': facts['hash']}])
    if cell.name in ('GetReconstructions', 'PostReconstructions'):
        cell.after = lambda reply: (
            []
            if (b'"terms"' in reply.body or b'"unpacked_length"' in reply.body) == may
            else ['another answer is due']
        )


def cas_anyones(matrix, cell):
    """What goes over all accounts: whether bytes that the caller names by their hash are here."""
    xorb = cell.world.xorb
    chunk = cell.bucket.facts[cell.place]['chunk'] if cell.bucket else '1' * 64
    cell.parameters.update(
        {'prefix': 'default', 'hash': chunk if cell.name == 'GetChunk' else xet.text(xorb.hash)}
    )
    cell.ok = (200, 404) if cell.name == 'GetChunk' else (200,)
    cell.body = {
        'PostXorb': xorb.body(),
        'PostShard': xet.shard_of(xorb).body(),
        'PostShardV2': xet.shard_of(xorb).body(),
        'PostGrant': b'{}',
    }.get(cell.name)


def body(text, ok=(200,)):
    def plan(matrix, cell):
        cell.body, cell.ok = text, ok
    return plan


def follow_runs(matrix, cell):
    cell.query['runs'] = '1'


PLANS = {
    'LiveEvents': follow_runs,
    **{name: read_run for name in (' '.join((NAMES['run read'], NAMES['run object'], 'ListReplicas GetReplica'))).split()},
    'RunWebhook': write_run(None),
    'RunSettings': write_run('{"keep_steps":64}'),
    'OpenRun': write_run(),
    'PutPin': write_run('{"step":0}'),
    'PutReplica': write_run('{"state":"ready","step":0}'),
    'PutChunk': put_chunk,
    'DeletePin': write_run(None, ok=(204, 404)),
    'PutRollback': write_run('{"step":0}'),
    'DeleteRollback': write_run(None),
    'DeleteReplica': write_run(None, ok=(204, 404)),
    'PublishStep': write_run(lambda cell: run_of(cell)['body']),
    'PutPart': put_part,
    'DeleteStep': delete_step,
    'DeleteRun': delete_run,
    'HotLoad': hot_load,
    'HotLoadStatus': hot_load,
    'AddKey': body('{"name":"another"}', ok=(201,)),
    'RevokeKey': revoke_key,
    'Gc': body('{"dry_run":true}'),
    'Scrub': body('{"rate":0}'),
    'AddBackupHold': body('{"name":"another"}', ok=(201,)),
    'EndBackupHold': end_hold,
    'SignIn': sign_in,
    'SignOut': nothing,  # a token has no session
    'EndSession': end_session,
    'SignUrls': body('{"requests":[{"method":"GET","bucket":"absent-one"}]}'),
    'AddSessionLink': body('{}', ok=(201,)),
    'PutBucket': settings_of_bucket,
    'MinioMetrics': not_here,
    **{name: nothing for name in ('NoModel', 'NoDataset', 'NoSpace', 'NoRepository', 'NoLogin', 'NoBucket')},
    'GetCa': nothing,
    'May': may_read,
    'ConsolePage': console_page,
    'ConsoleFile': console_file,
    'ListHubBuckets': name_owner,
    'ListRepositories': name_owner,
    'MoveHubBucket': hub_move,
    'CreateHubBucket': hub_create,
    'DeleteHubBucket': hub_delete,
    'HubBucketSettings': hub_settings,
    'ListTree': list_tree,
    'BucketPage': list_tree,
    'ResolveFile': resolve,
    'PathsInfo': paths_info,
    'BatchFiles': batch_files,
    **{
        name: lambda matrix, cell: cell.parameters.update({'revision*': 'main'})
        for name in ('XetReadToken', 'XetWriteToken')
    },
    **{
        name: cas
        for name in (
            'GetReconstructionV2',
            'GetReconstruction',
            'GetReconstructions',
            'PostReconstructions',
            'HeadFile',
        )
    },
    **{
        name: cas_anyones
        for name in ('GetChunk', 'HeadXorb', 'PostShardV2', 'PostShard', 'PostXorb', 'PostGrant')
    },
    'PostTelemetry': body('{}'),
    'FetchRecords': lambda matrix, cell: cell.parameters.update(token='none')
    or setattr(cell, 'ok', (403,)),
    **{name: setting for name in NAMES['bucket settings'].split()},
    **{name: object_setting for name in ('GetObjectLegalHold', 'GetObjectRetention')},
    **{f'{verb}{name}': fixed for name in CONFIGURATIONS for verb in ('Put', 'Delete')},
    'PutObjectLegalHold': fixed,
    'PutObjectRetention': fixed,
    **{name: list_prefix for access in ('bucket list', 'bucket scan') for name in NAMES[access].split()},
    **{
        name: change()
        for name in NAMES['bucket admin'].split()
        if name.startswith('Delete')
        and name not in ('DeleteBucket', 'DeleteHubBucket')
        and name[6:] not in CONFIGURATIONS
    },
    'PutBucketAcl': change(headers={'x-amz-acl': 'private'}),
    'PutBucketCors': change(
        '<CORSConfiguration><CORSRule><AllowedOrigin>http://a.example</AllowedOrigin>'
        '<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>'
    ),
    'PutBucketLifecycleConfiguration': change(
        '<LifecycleConfiguration><Rule><Filter><Prefix>none/</Prefix></Filter>'
        '<Status>Enabled</Status>'
        '<Expiration><Days>9</Days></Expiration></Rule></LifecycleConfiguration>'
    ),
    'PutBucketOwnershipControls': change(
        '<OwnershipControls><Rule><ObjectOwnership>BucketOwnerPreferred</ObjectOwnership></Rule>'
        '</OwnershipControls>'
    ),
    'PutBucketPolicy': put_policy,
    'PutPublicAccessBlock': change(
        '<PublicAccessBlockConfiguration><BlockPublicAcls>false</BlockPublicAcls>'
        '</PublicAccessBlockConfiguration>'
    ),
    'PutBucketTagging': change(
        '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
    ),
    'PutBucketVersioning': change(
        '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'
    ),
    'DeleteBucket': delete_bucket,
    'CreateBucket': create_bucket,
    'Preflight': preflight,
    'GetObjectAttributes': get_attributes,
    'PutObject': put_object,
    'DeleteObject': delete_object,
    'PutObjectTagging': tagging,
    'DeleteObjectTagging': tagging,
    'PutObjectAcl': put_acl,
    'CreateMultipartUpload': lambda matrix, cell: put_object(matrix, cell)
    or setattr(cell, 'body', None),
    **{
        name: upload
        for name in ('UploadPart', 'ListParts', 'CompleteMultipartUpload', 'AbortMultipartUpload')
    },
    'PostObject': post_object,
    'DeleteObjects': delete_objects,
}
OUTCOMES = {
    'CreateBucket': create_outcome,
    'PostObject': post_outcome,
    'HotLoad': hot_load_outcome,
    'HotLoadStatus': hot_load_outcome,
    'XetWriteToken': token_outcome,
    'ListTree': tree_outcome,
    'BucketPage': tree_outcome,
    'BatchFiles': batch_outcome,
    'CreateHubBucket': hub_create_outcome,
    'MoveHubBucket': hub_move_outcome,
    'ListRepositories': repositories_outcome,
    **{
        name: cas_outcome
        for access in ('token to read', 'token to write')
        for name in NAMES[access].split()
    },
    'DeleteObjects': delete_objects_outcome,
    'May': may_outcome,
}
