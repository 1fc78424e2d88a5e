// Sandbox.create of E2B's JavaScript SDK until the first byte of a command's output. Each line of input says how many at
// once, and is answered with as many microseconds; 0 ends the sandboxes that were made.
import { createInterface } from 'node:readline'

import { Sandbox } from 'e2b'

let made = []

async function first_output() {
  const begin = process.hrtime.bigint()
  const box = await Sandbox.create(process.env.BENCH_TEMPLATE, { timeoutMs: 300_000 })
  made.push(box)
  let us = 0
  await box.commands.run('true', {
    onStdout: () => {
      us ||= Number(process.hrtime.bigint() - begin) / 1000
    },
  })
  return us
}

for await (const line of createInterface({ input: process.stdin })) {
  const count = Number(line)
  if (count === 0) {
    await Promise.all(made.map((box) => box.kill()))
    made = []
    console.log('0')
  } else {
    console.log((await Promise.all(Array.from({ length: count }, first_output))).join(' '))
  }
}
