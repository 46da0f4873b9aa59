"""S3 requests as the tests of the S3 face make them: buckets, versioning, XML read and written."""
import urllib.parse
from xml.etree import ElementTree
from xml.sax.saxutils import escape


def tree(reply):
    """The body as elements without their namespace."""
    root = ElementTree.fromstring(reply.body)
    for element in root.iter():
        element.tag = element.tag.rpartition('}')[2]
    return root


def texts(root, path):
    return [element.text or '' for element in root.findall(path)]


def quote(key):
    return urllib.parse.quote(key, safe='/')


class Bucket:
    """A bucket of a running daemon, and one connection to it."""

    def __init__(self, daemon, name, versioning=None):
        self.daemon, self.name = daemon, name
        self.connection = daemon.connect()
        assert self.ask('PUT').status == 200
        if versioning:
            self.set_versioning(versioning)

    def close(self):
        self.connection.close()

    def ask(self, method, key='', body=None, query=None, **options):
        target = f'/{self.name}' + (f'/{quote(key)}' if key else '')
        if query:
            target += '?' + (query if isinstance(query, str) else urllib.parse.urlencode(query))
        return self.daemon.request(method, target, body, connection=self.connection, **options)

    def put(self, key, body=b'x', **headers):
        """Stores and gives the reply; the headers' names have _ for -."""
        return self.ask('PUT', key, body, headers={name.replace('_', '-'): value for name, value in headers.items()})

    def copy(self, source, key, **headers):
        return self.ask('PUT', key, headers={'x-amz-copy-source': source, **{name.replace('_', '-'): value for name, value in headers.items()}})

    def upload(self, key, pieces, **headers):
        """A completed multipart object of these parts; gives the reply of the completion."""
        named = {name.replace('_', '-'): value for name, value in headers.items()}
        upload = tree(self.ask('POST', key, query='uploads', headers=named)).findtext('UploadId')
        rows = ''
        for number, piece in enumerate(pieces, 1):
            part = self.ask('PUT', key, piece, query={'partNumber': number, 'uploadId': upload})
            assert part.status == 200, part.body
            crc32 = part.headers['x-amz-checksum-crc32']
            rows += (f'<Part><PartNumber>{number}</PartNumber><ETag>{escape(part.headers["ETag"])}</ETag>'
                     + (f'<ChecksumCRC32>{crc32}</ChecksumCRC32>' if crc32 else '') + '</Part>')
        body = f'<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>'
        return self.ask('POST', key, body, query={'uploadId': upload})

    def set_versioning(self, status):
        reply = self.ask('PUT', query='versioning', body=f'<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>')
        assert reply.status == 200, reply.body

    def delete_many(self, objects, quiet=False, **options):
        """objects: keys, or (key, version), or dicts of the children of Object."""
        named = [entry if isinstance(entry, dict) else {'Key': entry} if isinstance(entry, str) else {'Key': entry[0], 'VersionId': entry[1]}
                 for entry in objects]
        rows = ''.join('<Object>' + ''.join(f'<{name}>{escape(value)}</{name}>' for name, value in entry.items()) + '</Object>' for entry in named)
        body = f'<Delete><Quiet>{str(quiet).lower()}</Quiet>{rows}</Delete>'
        return self.ask('POST', query='delete', body=body.encode(), **options)

    def keys(self):
        return texts(tree(self.ask('GET', query='list-type=2')), 'Contents/Key')

    def versions(self, **query):
        """(kind, key, version, is latest) of each row of one page."""
        root = tree(self.ask('GET', query={'versions': '', **query}))
        return [(row.tag, row.findtext('Key'), row.findtext('VersionId'), row.findtext('IsLatest') == 'true')
                for row in root if row.tag in ('Version', 'DeleteMarker')]
