// The AWS SDK for JavaScript with its default configuration. usage: node sdk.mjs TEST ENDPOINT FILE   (keys, region and CA from the environment)
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import * as s3 from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'

const [, , test, endpoint, file] = process.argv
// The endpoint is a name in the virtual-host test; an address cannot carry a bucket's name, so the others ask for path style.
const pathStyle = !endpoint.includes('localhost')
const client = new s3.S3Client(pathStyle ? { endpoint, forcePathStyle: true } : { endpoint })
const Bucket = pathStyle ? 'javascript' : 'javascript-virtual'
const send = (Command, input) => client.send(new Command({ Bucket, ...input }))
const hash = (data) => createHash('sha256').update(data).digest('hex')
const md5 = (data) => createHash('md5').update(data).digest('hex')
const bytes = async (Key, more) => Buffer.from(await (await send(s3.GetObjectCommand, { Key, ...more })).Body.transformToByteArray())
const fails = async (promise, name, status) => {
  const failure = await promise.then(() => assert.fail(`expected ${name}`), (error) => error)
  assert.equal(failure.name, name)
  assert.equal(failure.$metadata.httpStatusCode, status)
}
const data = readFileSync(file)

const tests = {
  async objects () {
    const small = data.subarray(0, 300_000)
    const put = await send(s3.PutObjectCommand, { Key: "odd !*'() key+ü", Body: small, Metadata: { colour: 'blue' }, ContentType: 'text/x-test' })
    assert.equal(put.ETag, `"${md5(small)}"`)
    assert.ok(put.ChecksumCRC32)
    const head = await send(s3.HeadObjectCommand, { Key: "odd !*'() key+ü" })
    assert.deepEqual([head.Metadata, head.ContentType, head.ContentLength], [{ colour: 'blue' }, 'text/x-test', small.length])
    assert.equal(hash(await bytes("odd !*'() key+ü")), hash(small))
    assert.equal(hash(await bytes("odd !*'() key+ü", { Range: 'bytes=10-99' })), hash(small.subarray(10, 100)))
    await send(s3.CopyObjectCommand, { Key: 'copy', CopySource: `${Bucket}/${encodeURIComponent("odd !*'() key+ü")}` })
    assert.equal(hash(await bytes('copy')), hash(small))
    await send(s3.PutObjectTaggingCommand, { Key: 'copy', Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } })
    assert.deepEqual((await send(s3.GetObjectTaggingCommand, { Key: 'copy' })).TagSet, [{ Key: 'a', Value: 'b' }])
    await send(s3.DeleteObjectCommand, { Key: 'copy' })
    await fails(send(s3.GetObjectCommand, { Key: 'copy' }), 'NoSuchKey', 404)
    await fails(send(s3.PutObjectCommand, { Key: "odd !*'() key+ü", Body: 'x', IfNoneMatch: '*' }), 'PreconditionFailed', 412)
  },
  async streams () {
    await send(s3.PutObjectCommand, { Key: 'stream', Body: createReadStream(file), ContentLength: data.length })
    assert.equal(hash(await bytes('stream')), hash(data))
    await new Upload({ client, params: { Bucket, Key: 'upload', Body: createReadStream(file) } }).done()
    assert.equal(hash(await bytes('upload')), hash(data))
    assert.match((await send(s3.HeadObjectCommand, { Key: 'upload' })).ETag, /^"[0-9a-f]{32}-3"$/)
    async function * pieces () { for (let at = 0; at < data.length; at += 77_777) yield data.subarray(at, at + 77_777) }
    await new Upload({ client, params: { Bucket, Key: 'pieces', Body: Readable.from(pieces()) } }).done()
    assert.equal(hash(await bytes('pieces')), hash(data))
    const unknown = new Upload({ client, params: { Bucket, Key: 'small', Body: Readable.from([data.subarray(0, 1000)]) } })
    await unknown.done()
    assert.equal(hash(await bytes('small')), hash(data.subarray(0, 1000)))
  },
  async checksums () {
    for (const ChecksumAlgorithm of ['CRC32', 'CRC32C', 'SHA1', 'SHA256', 'CRC64NVME']) {
      await send(s3.PutObjectCommand, { Key: ChecksumAlgorithm, Body: data.subarray(0, 9999), ChecksumAlgorithm })
      const got = await send(s3.GetObjectCommand, { Key: ChecksumAlgorithm, ChecksumMode: 'ENABLED' })
      assert.ok(got[`Checksum${ChecksumAlgorithm}`], ChecksumAlgorithm)
      assert.equal(hash(Buffer.from(await got.Body.transformToByteArray())), hash(data.subarray(0, 9999)))
    }
    await fails(send(s3.PutObjectCommand, { Key: 'wrong', Body: 'x', ChecksumCRC32: 'AAAAAA==' }), 'BadDigest', 400)
  },
  async listings () {
    for (let i = 0; i < 12; i++) await send(s3.PutObjectCommand, { Key: `list/${i % 3}/${i}`, Body: `${i}` })
    const keys = []
    for await (const page of s3.paginateListObjectsV2({ client, pageSize: 5 }, { Bucket, Prefix: 'list/' })) keys.push(...page.Contents.map((entry) => entry.Key))
    assert.equal(keys.length, 12)
    assert.deepEqual(keys, [...keys].sort())
    const top = await send(s3.ListObjectsV2Command, { Prefix: 'list/', Delimiter: '/' })
    assert.deepEqual(top.CommonPrefixes.map((entry) => entry.Prefix), ['list/0/', 'list/1/', 'list/2/'])
    assert.equal((await send(s3.ListObjectsCommand, { Prefix: 'list/0/' })).Contents.length, 4)
    const gone = await send(s3.DeleteObjectsCommand, { Delete: { Objects: keys.map((Key) => ({ Key })) } })
    assert.equal(gone.Deleted.length, 12)
    assert.equal((await send(s3.ListObjectsV2Command, { Prefix: 'list/' })).KeyCount, 0)
  },
  async multipart () {
    const Key = 'parts'
    const { UploadId } = await send(s3.CreateMultipartUploadCommand, { Key })
    const Parts = []
    for (const [PartNumber, Body] of [[1, data.subarray(0, 6 << 20)], [2, data.subarray(6 << 20)]]) {
      const { ETag, ChecksumCRC32 } = await send(s3.UploadPartCommand, { Key, UploadId, PartNumber, Body })
      Parts.push({ PartNumber, ETag, ChecksumCRC32 })
    }
    assert.equal((await send(s3.ListPartsCommand, { Key, UploadId })).Parts.length, 2)
    await send(s3.CompleteMultipartUploadCommand, { Key, UploadId, MultipartUpload: { Parts } })
    assert.equal(hash(await bytes(Key)), hash(data))
  },
  async presigned () {
    const put = await getSignedUrl(client, new s3.PutObjectCommand({ Bucket, Key: 'presigned ü' }), { expiresIn: 60 })
    assert.equal((await fetch(put, { method: 'PUT', body: data.subarray(0, 5000) })).status, 200)
    const get = await getSignedUrl(client, new s3.GetObjectCommand({ Bucket, Key: 'presigned ü' }), { expiresIn: 60 })
    assert.equal(hash(Buffer.from(await (await fetch(get)).arrayBuffer())), hash(data.subarray(0, 5000)))
    await send(s3.HeadObjectCommand, { Key: 'presigned ü' })
  }
}

await client.send(new s3.CreateBucketCommand({ Bucket }))
await tests[test]()
console.log('passed')
