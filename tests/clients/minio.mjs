// minio-js with its default configuration. usage: node minio.mjs TEST ENDPOINT FILE   (keys, region and CA from the environment)
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import * as Minio from 'minio'

const [, , test, endpoint, file] = process.argv
const url = new URL(endpoint)
const client = new Minio.Client({
  endPoint: url.hostname, port: Number(url.port), useSSL: url.protocol === 'https:',
  accessKey: process.env.AWS_ACCESS_KEY_ID, secretKey: process.env.AWS_SECRET_ACCESS_KEY
})
const bucket = 'minio-js'
const hash = (data) => createHash('sha256').update(data).digest('hex')
const data = readFileSync(file)
const collect = async (stream) => {
  const pieces = []
  for await (const piece of stream) pieces.push(piece)
  return pieces
}
const bytes = async (key) => Buffer.concat(await collect(await client.getObject(bucket, key)))

const tests = {
  async objects () {
    const put = await client.putObject(bucket, 'a b+ü', data.subarray(0, 200_000), undefined, { 'X-Amz-Meta-Colour': 'blue', 'Content-Type': 'text/x-test' })
    assert.equal(put.etag, createHash('md5').update(data.subarray(0, 200_000)).digest('hex'))
    assert.equal(hash(await bytes('a b+ü')), hash(data.subarray(0, 200_000)))
    const stat = await client.statObject(bucket, 'a b+ü')
    assert.deepEqual([stat.size, stat.metaData.colour, stat.metaData['content-type']], [200_000, 'blue', 'text/x-test'])
    const piece = Buffer.concat(await collect(await client.getPartialObject(bucket, 'a b+ü', 10, 90)))
    assert.equal(hash(piece), hash(data.subarray(10, 100)))
    await client.copyObject(bucket, 'copy', `/${bucket}/a b+ü`)
    assert.equal(hash(await bytes('copy')), hash(data.subarray(0, 200_000)))
    await client.setObjectTagging(bucket, 'copy', { a: 'b' })
    assert.deepEqual(await client.getObjectTagging(bucket, 'copy'), [{ Key: 'a', Value: 'b' }])
    await client.removeObject(bucket, 'copy')
    await assert.rejects(client.statObject(bucket, 'copy'), { code: 'NotFound' })
  },
  async files () {
    await client.fPutObject(bucket, 'file', file)
    assert.equal(hash(await bytes('file')), hash(data))
    await client.fGetObject(bucket, 'file', `${file}.back`)
    assert.equal(hash(readFileSync(`${file}.back`)), hash(data))
    await client.putObject(bucket, 'stream', createReadStream(file))
    assert.equal(hash(await bytes('stream')), hash(data))
  },
  async listings () {
    for (let i = 0; i < 9; i++) await client.putObject(bucket, `list/${i % 3}/${i}`, `${i}`)
    assert.equal((await collect(client.listObjectsV2(bucket, 'list/', true))).length, 9)
    assert.equal((await collect(client.listObjects(bucket, 'list/', false))).length, 3)
    await client.removeObjects(bucket, (await collect(client.listObjectsV2(bucket, 'list/', true))).map((entry) => entry.name))
    assert.equal((await collect(client.listObjects(bucket, 'list/', true))).length, 0)
    assert.ok((await client.listBuckets()).some((entry) => entry.name === bucket))
    assert.equal((await collect(client.listIncompleteUploads(bucket, '', true))).length, 0)
  },
  async presigned () {
    const put = await client.presignedPutObject(bucket, 'presigned', 60)
    assert.equal((await fetch(put, { method: 'PUT', body: data.subarray(0, 5000) })).status, 200)
    const get = await client.presignedGetObject(bucket, 'presigned', 60)
    assert.equal(hash(Buffer.from(await (await fetch(get)).arrayBuffer())), hash(data.subarray(0, 5000)))
    const policy = client.newPostPolicy()
    policy.setBucket(bucket)
    policy.setKey('posted')
    policy.setExpires(new Date(Date.now() + 60_000))
    policy.setContentLengthRange(1, 10_000)
    const { postURL, formData } = await client.presignedPostPolicy(policy)
    const form = new FormData()
    for (const [name, value] of Object.entries(formData)) form.append(name, value)
    form.append('file', new Blob([data.subarray(0, 5000)]), 'posted.bin')
    assert.equal((await fetch(postURL, { method: 'POST', body: form })).status, 204)
    assert.equal(hash(await bytes('posted')), hash(data.subarray(0, 5000)))
  },
  async buckets () {
    await client.setBucketVersioning(bucket, { Status: 'Enabled' })
    const first = await client.putObject(bucket, 'versioned', '1')
    const second = await client.putObject(bucket, 'versioned', '2')
    assert.notEqual(first.versionId, second.versionId)
    const old = Buffer.concat(await collect(await client.getObject(bucket, 'versioned', { versionId: first.versionId })))
    assert.equal(old.toString(), '1')
    await client.setBucketLifecycle(bucket, { Rule: [{ ID: 'r', Status: 'Enabled', Filter: { Prefix: 'x/' }, Expiration: { Days: 3 } }] })
    assert.ok(JSON.stringify(await client.getBucketLifecycle(bucket)).includes('x/'))
    await client.removeBucketLifecycle(bucket)
    await client.setBucketTagging(bucket, { team: 'rl' })
    assert.deepEqual(await client.getBucketTagging(bucket), [{ Key: 'team', Value: 'rl' }])
  }
}

if (!(await client.bucketExists(bucket))) await client.makeBucket(bucket)
await tests[test]()
console.log('passed')
