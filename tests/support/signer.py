"""Signatures of S3 requests, written from the rules and independent of the server: SigV4 in the header, in the query and over chunks, SigV2 in the
query, POST policies of both kinds.

`target` is path and query as they go over the wire (percent-encoded). Nothing here does I/O.
"""
import base64
import datetime
import hashlib
import hmac
import json
import urllib.parse

from tests.support.daemon import ROOT_ID, ROOT_SECRET

UNSIGNED = 'UNSIGNED-PAYLOAD'
SIGNED_CHUNKS = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'
SIGNED_CHUNKS_TRAILER = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER'
UNSIGNED_CHUNKS_TRAILER = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'
EMPTY_SHA256 = hashlib.sha256(b'').hexdigest()
SUB_RESOURCES = set('acl cors delete lifecycle location logging notification partNumber policy requestPayment response-cache-control '
                    'response-content-disposition response-content-encoding response-content-language response-content-type response-expires '
                    'tagging torrent uploadId uploads versionId versioning versions website'.split())


def utc_now():
    return datetime.datetime.now(datetime.timezone.utc)


def encode(text):
    return urllib.parse.quote(text, safe='-._~')


def canonical_path(path):
    return urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe='/-._~')


def query_pairs(query):
    """Decoded names and values, in order; a value is None when there was no '='."""
    pairs = []
    for piece in filter(None, query.split('&')):
        name, equals, value = piece.partition('=')
        pairs.append((urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(value) if equals else None))
    return pairs


def canonical_query(query):
    return '&'.join(f'{name}={value}' for name, value in sorted((encode(name), encode(value or '')) for name, value in query_pairs(query)))


def split_target(target):
    path, _, query = target.partition('?')
    return path, query


def unsigned_chunks(body, chunk_bytes=65536, trailer=None):
    """The framing of aws-chunked without signatures. `trailer`: name and value."""
    framed = b''.join(b'%x\r\n%s\r\n' % (len(piece), piece) for piece in pieces(body, chunk_bytes))
    return framed + b'0\r\n' + (f'{trailer[0]}:{trailer[1]}\r\n'.encode() if trailer else b'') + b'\r\n'


def pieces(body, size):
    return [body[at:at + size] for at in range(0, len(body), size)]


class Signer:
    """Signs as one key. `host` is the Host header, port included."""

    def __init__(self, host, key_id=ROOT_ID, secret=ROOT_SECRET, region='us-east-1'):
        self.host, self.key_id, self.secret, self.region = host, key_id, secret, region

    @classmethod
    def of(cls, daemon, **options):
        return cls(f'127.0.0.1:{daemon.port}', **options)

    def scope(self, when):
        return f'{when:%Y%m%d}/{self.region}/s3/aws4_request'

    def key_v4(self, when):
        key = ('AWS4' + self.secret).encode()
        for part in (f'{when:%Y%m%d}', self.region, 's3', 'aws4_request'):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key

    def sign_text_v4(self, text, when):
        return hmac.new(self.key_v4(when), text.encode(), hashlib.sha256).hexdigest()

    def signature_v4(self, method, target, signed, payload, when):
        """`signed`: header names in lower case to values."""
        path, query = split_target(target)
        names = sorted(signed)
        canonical = '\n'.join([method, canonical_path(path), canonical_query(query), ''.join(f'{name}:{" ".join(signed[name].split())}\n' for name in names),
                               ';'.join(names), payload])
        text = f'AWS4-HMAC-SHA256\n{when:%Y%m%dT%H%M%SZ}\n{self.scope(when)}\n{hashlib.sha256(canonical.encode()).hexdigest()}'
        return self.sign_text_v4(text, when)

    def headers(self, method, target, body=b'', payload=None, when=None, extra=None):
        """All headers of a request with the signature in Authorization; every header given in `extra` is signed as well."""
        when = when or utc_now()
        payload = payload or hashlib.sha256(body).hexdigest()
        sent = {'host': self.host, 'x-amz-content-sha256': payload, 'x-amz-date': f'{when:%Y%m%dT%H%M%SZ}',
                **{name.lower(): value for name, value in (extra or {}).items()}}
        signature = self.signature_v4(method, target, sent, payload, when)
        sent['Authorization'] = (f'AWS4-HMAC-SHA256 Credential={self.key_id}/{self.scope(when)}, SignedHeaders={";".join(sorted(sent))}, '
                                 f'Signature={signature}')
        return sent

    def chunked(self, target, body, chunk_bytes=65536, trailer=None, when=None, extra=None, method='PUT'):
        """Headers and framed body of an upload in signed chunks. `trailer`: name and value."""
        when = when or utc_now()
        more = {'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': str(len(body)), **(extra or {})}
        if trailer:
            more['x-amz-trailer'] = trailer[0]
        headers = self.headers(method, target, payload=SIGNED_CHUNKS_TRAILER if trailer else SIGNED_CHUNKS, when=when, extra=more)
        previous = headers['Authorization'].rpartition('=')[2]
        framed = b''
        for piece in pieces(body, chunk_bytes) + [b'']:
            previous = self.sign_text_v4('\n'.join(['AWS4-HMAC-SHA256-PAYLOAD', headers['x-amz-date'], self.scope(when), previous, EMPTY_SHA256,
                                                    hashlib.sha256(piece).hexdigest()]), when)
            framed += f'{len(piece):x};chunk-signature={previous}\r\n'.encode() + piece + (b'\r\n' if piece else b'')
        if trailer:
            line = f'{trailer[0]}:{trailer[1]}\n'
            last = self.sign_text_v4('\n'.join(['AWS4-HMAC-SHA256-TRAILER', headers['x-amz-date'], self.scope(when), previous,
                                                hashlib.sha256(line.encode()).hexdigest()]), when)
            framed += f'{line[:-1]}\r\nx-amz-trailer-signature:{last}\r\n'.encode()
        return headers, framed + b'\r\n'

    def presign(self, method, target, expires=3600, when=None, extra=None, payload=UNSIGNED, parameters=None):
        """The target with a SigV4 signature in its query. The headers in `extra` must be sent with it; `parameters` replace X-Amz-* ones (None
        drops one) before signing."""
        when = when or utc_now()
        signed = {'host': self.host, **{name.lower(): value for name, value in (extra or {}).items()}}
        own = {'X-Amz-Algorithm': 'AWS4-HMAC-SHA256', 'X-Amz-Credential': f'{self.key_id}/{self.scope(when)}',
               'X-Amz-Date': f'{when:%Y%m%dT%H%M%SZ}', 'X-Amz-Expires': str(expires), 'X-Amz-SignedHeaders': ';'.join(sorted(signed)),
               **(parameters or {})}
        query = '&'.join(f'{name}={encode(value)}' for name, value in own.items() if value is not None)
        target = f'{target}{"&" if "?" in target else "?"}{query}'
        return f'{target}&X-Amz-Signature={self.signature_v4(method, target, signed, payload, when)}'

    def presign_v2(self, method, target, expires=3600, when=None, extra=None, resource=None):
        """The target with a SigV2 signature in its query. `resource`: the path that is signed when it is not the target's (virtual hosts)."""
        when = when or utc_now()
        path, query = split_target(target)
        until = int(when.timestamp()) + expires
        headers = {name.lower(): value.strip() for name, value in (extra or {}).items()}
        amz = ''.join(f'{name}:{headers[name]}\n' for name in sorted(headers) if name.startswith('x-amz-'))
        parts = sorted((name, value) for name, value in query_pairs(query) if name in SUB_RESOURCES)
        signed_query = '&'.join(name if value is None else f'{name}={value}' for name, value in parts)
        text = '\n'.join([method, headers.get('content-md5', ''), headers.get('content-type', ''), str(until), amz + (resource or path)])
        signature = self.sign_text_v2(text + ('?' + signed_query if signed_query else ''))
        own = f'AWSAccessKeyId={encode(self.key_id)}&Signature={encode(signature)}&Expires={until}'
        return f'{target}{"&" if query else "?"}{own}'

    def sign_text_v2(self, text):
        return base64.b64encode(hmac.new(self.secret.encode(), text.encode(), hashlib.sha1).digest()).decode()

    def post_fields(self, policy, version=4, when=None):
        """The form fields that sign `policy` (a dict, or text as it is)."""
        when = when or utc_now()
        text = base64.b64encode((policy if isinstance(policy, str) else json.dumps(policy)).encode()).decode()
        if version == 2:
            return {'AWSAccessKeyId': self.key_id, 'policy': text, 'signature': self.sign_text_v2(text)}
        return {'policy': text, 'x-amz-algorithm': 'AWS4-HMAC-SHA256', 'x-amz-credential': f'{self.key_id}/{self.scope(when)}',
                'x-amz-date': f'{when:%Y%m%dT%H%M%SZ}', 'x-amz-signature': self.sign_text_v4(text, when)}


def form_body(fields, file=None, boundary='----deltabucket-form-0123456789', file_name='file.bin', file_type=None):
    """multipart/form-data: Content-Type and bytes. `fields`: dict or list of pairs; `file`: the bytes of the part named file."""
    parts = []
    for name, value in (fields.items() if isinstance(fields, dict) else fields):
        value = value if isinstance(value, bytes) else str(value).encode()
        parts.append(b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (boundary.encode(), name.encode(), value))
    if file is not None:
        kind = f'Content-Type: {file_type}\r\n'.encode() if file_type else b''
        parts.append(b'--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n%s\r\n%s\r\n' % (
            boundary.encode(), file_name.encode(), kind, file))
    return f'multipart/form-data; boundary={boundary}', b''.join(parts) + b'--%s--\r\n' % boundary.encode()
