"""multipart/form-data as a browser sends it."""
import secrets


def multipart_form(fields, data, filename='file.bin', kind='application/octet-stream', after=None):
    """The body and its Content-Type: the fields, then the file, then the fields of `after`."""
    boundary = f'----form{secrets.token_hex(12)}'

    def part(name, value, more=''):
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
        return head.encode() + (value if isinstance(value, bytes) else str(value).encode()) + b'\r\n'
    body = b''.join(part(name, value) for name, value in fields.items())
    body += part('file', data, f'; filename="{filename}"\r\nContent-Type: {kind}')
    body += b''.join(part(name, value) for name, value in (after or {}).items())
    return body + f'--{boundary}--\r\n'.encode(), f'multipart/form-data; boundary={boundary}'
