// What a user of E2B's JavaScript SDK does with sandboxes, and what comes back. Run by engine_test.py, on two generations.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { AuthenticationError, CommandExitError, NotFoundError, RateLimitError, Sandbox, TimeoutError } from 'e2b'

const run = `${process.pid}`
const decoder = new TextDecoder()
const made = []

async function create(...words) {
  const options = typeof words.at(-1) === 'object' ? words.pop() : {}
  const box = await Sandbox.create(...words, { timeoutMs: 120_000, ...options })
  made.push(box)
  return box
}

after(async () => {
  await Promise.all(made.map((box) => box.kill()))
})

async function eventually(condition) {
  for (let i = 0; i < 1200; ++i) {
    const result = await condition()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail('it did not happen')
}

async function all(paginator) {
  const found = []
  while (paginator.hasNext) found.push(...(await paginator.nextItems()))
  return found
}

describe('inside', () => {
  let box
  before(async () => {
    box = await create({ envs: { GLOBAL: 'yes' } })
  })

  test('commands', async () => {
    const done = await box.commands.run('echo $GLOBAL $OWN; pwd; whoami', { envs: { OWN: 'own' }, cwd: '/tmp', user: 'root' })
    assert.equal(done.stdout, 'yes own\n/tmp\nroot\n')
    await assert.rejects(box.commands.run('exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3)
    await assert.rejects(box.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)
  })

  test('background, input, kill, attach', async () => {
    let output = ''
    const handle = await box.commands.run('cat', { background: true, stdin: true, onStdout: (text) => (output += text) })
    await box.commands.sendStdin(handle.pid, 'hello\n')
    await eventually(() => output === 'hello\n')
    await handle.disconnect()
    const again = await (await Sandbox.connect(box.sandboxId)).commands.connect(handle.pid, { onStdout: (text) => (output += text) })
    await box.commands.sendStdin(handle.pid, 'again\n')
    await eventually(() => output.endsWith('again\n'))
    assert.equal(await again.kill(), true)
    assert.equal(await box.commands.kill(handle.pid), false)
  })

  test('a terminal', async () => {
    let output = ''
    const terminal = await box.pty.create({ rows: 24, cols: 80, onData: (data) => (output += decoder.decode(data)) })
    await box.pty.resize(terminal.pid, { rows: 33, cols: 99 })
    await box.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'))
    await terminal.wait()
    assert.match(output, /33 99/)
  })

  test('sudo', async () => {
    assert.equal((await box.commands.run('sudo id -u')).stdout, '0\n')
    assert.equal((await box.commands.run('echo in | sudo cat')).stdout, 'in\n')
    await assert.rejects(box.commands.run("sudo sh -c 'exit 7'"), (error) => error instanceof CommandExitError && error.exitCode === 7)
    const handle = await box.commands.run('sudo sleep 4715', { background: true })
    const count = async () => (await box.commands.run("pgrep -fc '^sleep 4715' || true")).stdout
    await eventually(async () => (await count()) === '1\n')
    assert.equal(await handle.kill(), true)
    await eventually(async () => (await count()) === '0\n')
  })

  test('files', async () => {
    await box.files.write('a/b.txt', 'héllo')
    assert.equal(await box.files.read('/home/user/a/b.txt'), 'héllo')
    const blob = new Uint8Array(20_000_000).map((_, i) => i)
    await box.files.write('blob', blob.buffer)
    assert.ok(Buffer.from(await box.files.read('blob', { format: 'bytes' })).equals(Buffer.from(blob)))
    let size = 0
    for await (const piece of await box.files.read('blob', { format: 'stream' })) size += piece.length
    assert.equal(size, blob.length)
    await box.files.rename('a', 'c')
    assert.equal(await box.files.exists('c/b.txt'), true)
    await box.files.remove('c')
    await assert.rejects(box.files.read('c/b.txt'), NotFoundError)
  })

  test('watching', async () => {
    await box.files.makeDir('watched/sub')
    const events = []
    const handle = await box.files.watchDir('watched', (event) => events.push([event.name, event.type]), { recursive: true })
    await box.files.write('watched/sub/w', 'x')
    await eventually(() => events.length >= 3)
    assert.deepEqual(events, [['sub/w', 'create'], ['sub/w', 'chmod'], ['sub/w', 'write']])
    await handle.stop()
  })

  test('links that are signed', async () => {
    await box.files.write('signed file', 'content')
    const answer = await fetch(await box.downloadUrl('signed file', { useSignatureExpiration: 60_000 }))
    assert.equal(await answer.text(), 'content')
    const wrong = (await box.downloadUrl('signed file')).replace('signature=v1_', 'signature=v1_A')
    assert.equal((await fetch(wrong)).status, 401) // that nobody made
    const form = new FormData()
    form.append('file', new Blob(['uploaded']), 'up')
    assert.equal((await fetch(await box.uploadUrl('up'), { method: 'POST', body: form })).status, 200)
    assert.equal(await box.files.read('up'), 'uploaded')
  })

  test('git', async () => {
    await box.git.init('repo', { initialBranch: 'main' })
    await box.git.configureUser('A', 'a@example.com', { scope: 'local', path: 'repo' })
    await box.files.write('repo/f', 'x')
    await box.git.add('repo')
    await box.git.commit('repo', 'first')
    await box.git.createBranch('repo', 'side')
    assert.deepEqual((await box.git.branches('repo')).branches.sort(), ['main', 'side'])
  })
})

describe('control', () => {
  test('information, timeout, end', async () => {
    const box = await create({ metadata: { run, kind: 'info' }, timeoutMs: 60_000 })
    const info = await box.getInfo()
    assert.deepEqual([info.sandboxId, info.state, info.metadata], [box.sandboxId, 'running', { run, kind: 'info' }])
    await box.setTimeout(600_000)
    assert.ok((await box.getInfo()).endAt - info.endAt > 500_000)
    assert.equal(await box.isRunning(), true)
    assert.equal(await box.kill(), true)
    assert.equal(await box.isRunning(), false)
    assert.equal(await box.kill(), false)
    await assert.rejects(box.getInfo(), NotFoundError)
    await assert.rejects(Sandbox.connect(box.sandboxId), NotFoundError)
  })

  test('list, pages, filters', async () => {
    const odd = { run, list: 'a=b&c d/é%' }
    const boxes = []
    for (let n = 0; n < 3; ++n) boxes.push((await create({ metadata: { ...odd, n: `${n}` } })).sandboxId)
    const ids = async (options) => (await all(Sandbox.list(options))).map((each) => each.sandboxId)
    assert.deepEqual(await ids({ query: { metadata: odd }, limit: 2 }), boxes.toReversed())
    await Sandbox.pause(boxes[0])
    assert.deepEqual(await ids({ query: { metadata: odd, state: ['paused'] } }), [boxes[0]])
  })

  test('what is refused', async () => {
    await assert.rejects(Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
    await assert.rejects(Sandbox.create('no-such-template'), /404.*no-such-template/)
    await assert.rejects(Sandbox.connect('i' + '0'.repeat(20)), NotFoundError)
    assert.equal(await Sandbox.kill('i' + '0'.repeat(20)), false)
  })

  test('a team that has enough, and what is not its own', async () => {
    const few = { apiKey: process.env.FEW_KEY, retries: 0 }
    const box = await Sandbox.create({ timeoutMs: 60_000, ...few })
    try {
      await assert.rejects(Sandbox.create({ timeoutMs: 60_000, ...few }), RateLimitError)
      await assert.rejects(Sandbox.getInfo(box.sandboxId), NotFoundError)
      assert.equal(await Sandbox.kill(box.sandboxId), false)
    } finally {
      assert.equal(await box.kill(), true)
    }
  })

  test('killed while a command runs', async () => {
    const box = await create()
    const handle = await box.commands.run('sleep 60', { background: true })
    const end = assert.rejects(handle.wait(), TimeoutError)
    await box.kill()
    await end
  })
})

describe('pausing', () => {
  test('memory is kept', async () => {
    const box = await create()
    const handle = await box.commands.run('while ! test -e go; do sleep 0.05; done; echo still', { background: true })
    handle.wait().catch(() => {}) // its connection goes with the pause
    await box.pause()
    assert.equal(await box.isRunning(), false)
    const again = await Sandbox.connect(box.sandboxId)
    const attached = await again.commands.connect(handle.pid)
    await again.files.write('go', '')
    assert.equal((await attached.wait()).stdout, 'still\n')
  })

  test('files alone', async () => {
    const box = await create()
    await box.files.write('kept', 'kept')
    await box.pause({ keepMemory: false })
    await box.connect()
    assert.equal(await box.files.read('kept'), 'kept')
  })

  test('at its end, and awake on traffic', async () => {
    const box = await create({ lifecycle: { onTimeout: 'pause', autoResume: true } })
    await box.setTimeout(1000)
    await eventually(async () => (await box.getInfo()).state === 'paused')
    assert.equal((await box.commands.run('echo awake')).stdout, 'awake\n')
  })
})

test('snapshots and forks', async () => {
  const box = await create()
  await box.files.write('kept', 'kept')
  const snapshot = await box.createSnapshot()
  const copy = await create(snapshot.snapshotId)
  assert.equal(await copy.files.read('kept'), 'kept')
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
  const forks = await box.fork({ count: 2, timeoutMs: 60_000 })
  made.push(...forks)
  for (const fork of forks) assert.equal(await fork.files.read('kept'), 'kept')
})
