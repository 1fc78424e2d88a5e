// Sandboxes of an engine as a user of the JavaScript SDKs has them. Run by e2b_test.py.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { NotFoundError, Sandbox } from 'e2b'

async function eventually(condition) {
  for (let i = 0; i < 1000; ++i) {
    const result = await condition()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.fail('it did not happen')
}

async function withBox(options, act) {
  const box = await Sandbox.create(options)
  try {
    return await act(box)
  } finally {
    await Sandbox.kill(box.sandboxId)
  }
}

async function listed(options) {
  const found = []
  const pages = Sandbox.list(options)
  while (pages.hasNext) found.push(...(await pages.nextItems()))
  return found
}

test('from create to kill', () =>
  withBox({}, async (box) => {
    assert.match(box.sandboxId, /^i[a-z0-9]{20}$/)
    assert.equal(await box.isRunning(), true)
    assert.equal((await box.commands.run('echo hello')).stdout, 'hello\n')
    assert.equal(await box.kill(), true)
    assert.equal(await box.isRunning(), false)
    assert.equal(await Sandbox.kill(box.sandboxId), false)
  }))

test('metadata is told and searched', () =>
  withBox({ metadata: { who: 'ann & bob', run: '42/b' } }, async (box) => {
    assert.deepEqual((await box.getInfo()).metadata, { who: 'ann & bob', run: '42/b' })
    const found = await listed({ query: { metadata: { run: '42/b' } } })
    assert.deepEqual(found.map((entry) => entry.sandboxId), [box.sandboxId])
  }))

test('environment', () =>
  withBox({ envs: { GREETING: 'good morning' } }, async (box) => {
    assert.equal((await box.commands.run('echo $GREETING')).stdout, 'good morning\n')
  }))

test('a timeout ends it', () =>
  withBox({ timeoutMs: 60_000 }, async (box) => {
    await box.setTimeout(1000)
    await eventually(async () => !(await box.isRunning()))
    await assert.rejects(Sandbox.connect(box.sandboxId), NotFoundError)
  }))

test('pause keeps memory', () =>
  withBox({}, async (box) => {
    const command = await box.commands.run('while true; do sleep 0.05; done', { background: true })
    await box.pause()
    assert.equal(await box.isRunning(), false)
    const again = await Sandbox.connect(box.sandboxId)
    assert.equal(await again.isRunning(), true)
    assert.ok((await again.commands.list()).some((process) => process.pid === command.pid))
  }))

test('signed urls', () =>
  withBox({}, async (box) => {
    await box.files.write('/home/user/page', 'from inside')
    const answer = await fetch(await box.downloadUrl('/home/user/page'))
    assert.equal(await answer.text(), 'from inside')
    const form = new FormData()
    form.append('file', new Blob(['from outside']), 'upload')
    assert.equal((await fetch(await box.uploadUrl('/home/user/upload'), { method: 'POST', body: form })).status, 200)
    assert.equal(await box.files.read('/home/user/upload'), 'from outside')
  }))

test('many at once', async () => {
  const said = await Promise.all(
    [...Array(20).keys()].map((number) =>
      withBox({}, async (box) => (await box.commands.run(`echo $((${number} * 2))`)).stdout.trim()),
    ),
  )
  assert.deepEqual(said, [...Array(20).keys()].map((number) => String(number * 2)))
})

test('an unknown template', async () => {
  await assert.rejects(Sandbox.create('no-such-template'), /not found/)
})

test('a stream ends when its sandbox is killed', () =>
  withBox({}, async (box) => {
    const command = await box.commands.run('sleep 1000', { background: true })
    await box.kill()
    await assert.rejects(command.wait())
  }))
