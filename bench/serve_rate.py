#!/usr/bin/env python3
"""GET of a 64 MiB object, 4 connections: deltabucketd against nginx with sendfile, plain and over TLS, in turn in one run."""
import os
import shutil
import subprocess
import tempfile
import time

from measure import cpu_seconds, median, say
from tests.support.daemon import ROOT_TOKEN, Daemon, free_port

SIZE, CONNECTIONS, REPEATS, ROUNDS = 64 << 20, 4, 6, 5


def nginx(folder, tls):
    port = free_port()
    listen = f'listen 127.0.0.1:{port}' + (' ssl' if tls else '') + ';'
    if tls:
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
                        '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', f'{folder}/key.pem', '-out', f'{folder}/cert.pem'], check=True, capture_output=True)
        listen += f' ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;'
    with open(f'{folder}/nginx.conf', 'w') as conf:
        conf.write(f'daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log; user root;\n'
                   'events { worker_connections 512; }\n'
                   f'http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;'
                   f' uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t; server {{ {listen} root {folder}; }} }}\n')
    process = subprocess.Popen(['nginx', '-c', f'{folder}/nginx.conf'], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    children = subprocess.run(['pgrep', '-P', str(process.pid)], capture_output=True, text=True).stdout.split()
    return process, port, [process.pid, *map(int, children)]


def fetch(url, ca):
    command = ['curl', '-s', '-H', f'Authorization: Bearer {ROOT_TOKEN}'] + (['--cacert', ca] if url.startswith('https') else []) + ['-o', '/dev/null', url] * REPEATS
    begun = time.monotonic()
    clients = [subprocess.Popen(command) for _ in range(CONNECTIONS)]
    assert all(client.wait() == 0 for client in clients)
    return SIZE * REPEATS * CONNECTIONS / (time.monotonic() - begun) / 1e9


def main():
    folder = tempfile.mkdtemp()
    body = os.urandom(SIZE)
    with open(f'{folder}/object', 'wb') as file:
        file.write(body)
    gigabytes = SIZE * REPEATS * CONNECTIONS / 1e9
    for tls in (False, True):
        with Daemon(tls=tls) as daemon:
            daemon.request('PUT', '/bench')
            daemon.request('PUT', '/bench/object', body)
            process, port, pids = nginx(folder, tls)
            scheme = 'https' if tls else 'http'
            rates, costs = ([], []), ([], [])
            for _ in range(ROUNDS):
                for who, (url, ca, members) in enumerate(((f'{daemon.endpoint}/bench/object', daemon.ca, [daemon.process.pid]),
                                                               (f'{scheme}://127.0.0.1:{port}/object', f'{folder}/cert.pem', pids))):
                    before = cpu_seconds(members)
                    rates[who].append(fetch(url, ca))
                    costs[who].append((cpu_seconds(members) - before) / gigabytes)
            process.terminate()
            process.wait()
            for who, name in enumerate(('deltabucketd', 'nginx sendfile')):
                say(f'GET 64 MiB x {CONNECTIONS} {scheme} {name}', median(rates[who]), 'GB/s')
                say(f'GET 64 MiB x {CONNECTIONS} {scheme} {name} CPU', median(costs[who]), 's/GB')
            say(f'GET {scheme} rate against nginx (want >= 0.6)', median([a / b for a, b in zip(*rates)]), 'x')
    shutil.rmtree(folder)


if __name__ == '__main__':
    main()
