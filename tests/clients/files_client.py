"""usage: files_client.py TEST ENDPOINT FOLDER   pyarrow, s3fs (fsspec), DuckDB, obstore and runai-model-streamer at work; run by test_arrow.py in their own environment.

Keys and region come from the environment, the CA too where the library reads it there.
"""
import filecmp
import hashlib
import os
import sys
import urllib.parse

TEST, ENDPOINT, FOLDER = sys.argv[1:]
URL = urllib.parse.urlsplit(ENDPOINT)
CA = os.environ.get('AWS_CA_BUNDLE') or os.environ.get('SSL_CERT_FILE')
KEY, SECRET, REGION = os.environ['AWS_ACCESS_KEY_ID'], os.environ['AWS_SECRET_ACCESS_KEY'], os.environ['AWS_DEFAULT_REGION']
DATA = open(os.path.join(FOLDER, 'data.bin'), 'rb').read()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def same(got, wanted):
    assert (len(got), sha(got)) == (len(wanted), sha(wanted)), f'{len(got)} bytes came, {len(wanted)} were sent, or others'


def table():
    import pyarrow
    return pyarrow.table({'number': range(200_000), 'name': [f'row {number % 977}' for number in range(200_000)]})


def arrow_filesystem():
    from pyarrow import fs
    more = {'tls_ca_file_path': CA} if CA else {}
    return fs.S3FileSystem(endpoint_override=URL.netloc, scheme=URL.scheme, region=REGION, allow_bucket_creation=True, allow_bucket_deletion=True, **more)


def arrow():
    import pyarrow.dataset
    import pyarrow.parquet
    from pyarrow import fs
    s3 = arrow_filesystem()
    s3.create_dir('arrow/dir')
    assert s3.get_file_info('arrow/dir').type == fs.FileType.Directory
    with s3.open_output_stream('arrow/dir/data.bin', metadata={'Content-Type': 'text/x-test', 'colour': 'blue'}) as out:
        for at in range(0, len(DATA), 1_000_003):
            out.write(DATA[at:at + 1_000_003])
    info = s3.get_file_info('arrow/dir/data.bin')
    assert (info.type, info.size) == (fs.FileType.File, len(DATA)), info
    with s3.open_input_stream('arrow/dir/data.bin') as source:
        assert source.metadata()['Content-Type'] == b'text/x-test', source.metadata()
        same(source.read(), DATA)
    with s3.open_input_file('arrow/dir/data.bin') as source:
        source.seek(123_456)
        same(source.read(1000), DATA[123_456:124_456])
        assert source.size() == len(DATA)
    pyarrow.parquet.write_table(table(), 'arrow/table.parquet', filesystem=s3)
    assert pyarrow.parquet.read_table('arrow/table.parquet', filesystem=s3).equals(table())
    assert pyarrow.parquet.read_table('arrow/table.parquet', filesystem=s3, filters=[('number', '<', 10)]).num_rows == 10
    pyarrow.dataset.write_dataset(table(), 'arrow/set', filesystem=s3, format='parquet', max_rows_per_file=50_000, max_rows_per_group=50_000)
    assert pyarrow.dataset.dataset('arrow/set', filesystem=s3).count_rows() == 200_000
    s3.copy_file('arrow/dir/data.bin', 'arrow/copy.bin')
    s3.move('arrow/copy.bin', 'arrow/moved.bin')
    assert s3.get_file_info('arrow/copy.bin').type == fs.FileType.NotFound
    found = sorted(entry.path for entry in s3.get_file_info(fs.FileSelector('arrow', recursive=True)) if entry.is_file)
    assert found[0] == 'arrow/dir/data.bin' and 'arrow/moved.bin' in found and len(found) == 7, found
    s3.delete_file('arrow/moved.bin')
    s3.delete_dir('arrow/set')
    s3.delete_dir_contents('arrow')
    s3.delete_dir('arrow')
    assert s3.get_file_info('arrow').type == fs.FileType.NotFound


def fsspec():
    import pyarrow.parquet
    import s3fs
    s3 = s3fs.S3FileSystem(endpoint_url=ENDPOINT)
    s3.mkdir('fsspec')
    with s3.open('fsspec/dir/data.bin', 'wb', block_size=8 << 20) as out:
        for at in range(0, len(DATA), 1_000_003):
            out.write(DATA[at:at + 1_000_003])
    assert s3.info('fsspec/dir/data.bin')['size'] == len(DATA)
    same(s3.cat('fsspec/dir/data.bin'), DATA)
    with s3.open('fsspec/dir/data.bin', 'rb') as source:
        source.seek(5_000_000)
        same(source.read(70_000), DATA[5_000_000:5_070_000])
    s3.put(os.path.join(FOLDER, 'tree'), 'fsspec/tree', recursive=True)
    s3.get('fsspec/tree', os.path.join(FOLDER, 'tree.fsspec'), recursive=True)
    compared = filecmp.dircmp(os.path.join(FOLDER, 'tree'), os.path.join(FOLDER, 'tree.fsspec'))
    assert not (compared.left_only or compared.right_only or compared.diff_files), compared.report()
    s3.pipe({f'fsspec/many/{number}': b'%d' % number for number in range(30)})
    assert len(s3.ls('fsspec/many')) == 30
    assert s3.cat('fsspec/many/7') == b'7'
    assert len(s3.glob('fsspec/many/1*')) == 11
    s3.copy('fsspec/dir/data.bin', 'fsspec/copy.bin')
    s3.mv('fsspec/copy.bin', 'fsspec/moved.bin')
    assert s3.checksum('fsspec/moved.bin') and not s3.exists('fsspec/copy.bin')
    s3.setxattr('fsspec/many/7', colour='blue')
    assert s3.getxattr('fsspec/many/7', 'colour') == 'blue'
    s3.put_tags('fsspec/many/7', {'a': 'b'})
    assert s3.get_tags('fsspec/many/7') == {'a': 'b'}
    pyarrow.parquet.write_table(table(), 'fsspec/table.parquet', filesystem=s3)
    assert pyarrow.parquet.read_table('fsspec/table.parquet', filesystem=s3).equals(table())
    try:
        s3.pipe_file('fsspec/many/7', b'again', mode='create')
        raise AssertionError('an existing key was overwritten in mode create')
    except FileExistsError:
        pass
    s3.rm('fsspec', recursive=True)
    s3.invalidate_cache()
    assert not s3.exists('fsspec')


def duckdb():
    import duckdb
    import duckdb_extension_httpfs
    home = os.path.dirname(duckdb_extension_httpfs.__file__)
    extension = next(os.path.join(at, name) for at, _, names in os.walk(home) for name in names if name.endswith('.duckdb_extension'))
    base = duckdb.connect()
    base.execute(f"LOAD '{extension}'")
    if CA:
        base.execute(f"SET ca_cert_file='{CA}'")
        base.execute('SET enable_server_cert_verification=true')
    bucket, style = ('duckdb', "URL_STYLE 'path',") if 'localhost' not in ENDPOINT else ('duckdb-virtual', '')
    base.execute(f"CREATE SECRET s (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION '{REGION}', {style} "
                 f"ENDPOINT '{URL.netloc}', USE_SSL {'true' if URL.scheme == 'https' else 'false'})")
    base.execute(f"COPY (SELECT range AS number, 'row ' || (range % 977) AS name FROM range(500000)) TO 's3://{bucket}/dir/table.parquet'")
    assert base.execute(f"SELECT count(*), sum(number) FROM 's3://{bucket}/dir/table.parquet'").fetchone() == (500_000, 499_999 * 250_000)
    assert base.execute(f"SELECT name FROM read_parquet('s3://{bucket}/dir/*.parquet') WHERE number = 1000").fetchone() == ('row 23',)
    base.execute(f"COPY (SELECT range % 3 AS part, range AS number FROM range(3000)) TO 's3://{bucket}/parts' (FORMAT parquet, PARTITION_BY (part))")
    assert base.execute(f"SELECT part, count(*) FROM read_parquet('s3://{bucket}/parts/*/*.parquet', hive_partitioning=true) GROUP BY part ORDER BY part").fetchall() \
        == [(0, 1000), (1, 1000), (2, 1000)]
    base.execute(f"COPY (SELECT range AS n, repeat(md5(range::VARCHAR), 8) AS t FROM range(40000)) TO 's3://{bucket}/large.csv'")
    assert base.execute(f"SELECT count(*), max(n) FROM 's3://{bucket}/large.csv'").fetchone() == (40_000, 39_999)


def obstore():
    import obstore
    from obstore.store import S3Store
    options = {} if CA else {'client_options': {'allow_http': True}}
    store = S3Store('obstore', endpoint=ENDPOINT, **options)
    obstore.put(store, 'small', b'small')
    assert bytes(obstore.get(store, 'small').bytes()) == b'small'
    obstore.put(store, 'dir/data ü.bin', DATA, use_multipart=True, attributes={'Content-Type': 'text/x-test'})
    same(bytes(obstore.get(store, 'dir/data ü.bin').bytes()), DATA)
    same(bytes(obstore.get_range(store, 'dir/data ü.bin', start=100, end=5000)), DATA[100:5000])
    try:
        obstore.put(store, 'small', b'again', mode='create')
        raise AssertionError('an existing key was overwritten in mode create')
    except obstore.exceptions.AlreadyExistsError:
        pass
    tag = obstore.head(store, 'small')['e_tag']
    obstore.put(store, 'small', b'changed', mode={'e_tag': tag})
    try:
        obstore.put(store, 'small', b'lost', mode={'e_tag': tag})
        raise AssertionError('a stale ETag was accepted')
    except obstore.exceptions.PreconditionError:
        pass
    obstore.copy(store, 'small', 'copy')
    obstore.rename(store, 'copy', 'renamed')
    assert sorted(entry['path'] for batch in obstore.list(store) for entry in batch) == ['dir/data ü.bin', 'renamed', 'small']
    assert obstore.list_with_delimiter(store)['common_prefixes'] == ['dir']
    url = obstore.sign(store, 'GET', 'small', __import__('datetime').timedelta(seconds=60))
    assert 'X-Amz-Signature' in url
    obstore.delete(store, ['small', 'renamed', 'dir/data ü.bin'])
    assert [entry for batch in obstore.list(store) for entry in batch] == []


def streamer_library():
    """runai_model_streamer.libstreamer. The package itself imports torch, for what comes behind the reading."""
    import importlib.util
    import types
    package = types.ModuleType('runai_model_streamer')
    package.__path__ = importlib.util.find_spec('runai_model_streamer').submodule_search_locations
    sys.modules['runai_model_streamer'] = package
    from runai_model_streamer.libstreamer import libstreamer
    return libstreamer


def streamer():
    import ctypes
    os.environ['RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING'] = '0'
    os.environ.update(AWS_ENDPOINT_URL=ENDPOINT, AWS_EC2_METADATA_DISABLED='true')
    library = streamer_library()
    session, found = library.runai_start(), []
    library.runai_list_files(session, 's3://streamer/model/', lambda path, size: found.append((path, size)))
    assert found == [('s3://streamer/model/shard 1.safetensors', len(DATA))], found
    into, cuts = (ctypes.c_char * len(DATA))(), [0, 1, 9_000_000, len(DATA) - 7, len(DATA)]
    sizes = [end - at for at, end in zip(cuts, cuts[1:])]
    places = [ctypes.addressof(into) + at for at in cuts[:-1]]
    library.runai_request(session, [found[0][0]], [len(sizes)], cuts[:-1], sizes, places)
    results = [library.runai_response(session, 60_000)[0] for _ in sizes]
    library.runai_end(session)
    assert results == [library.SUCCESS_ERROR_CODE] * len(sizes), [library.runai_response_str(result) for result in results]
    same(bytes(into), DATA)


{'arrow': arrow, 'fsspec': fsspec, 'duckdb': duckdb, 'obstore': obstore, 'streamer': streamer}[TEST]()
print('passed')
