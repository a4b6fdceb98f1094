// Starts a Ropeway gateway for tests: copy this file into your project.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const START_MS = 120_000;
const STOP_MS = 20_000;

// Runs a gateway that also serves gRPC clients, and returns its `address`, `log()` and
// `stop()`. It is the command that ROPEWAY_COMMAND names, or `ropeway` of PATH. The options
// are those of `ropeway serve`.
async function startGateway(...options) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ropeway-'));
  const ready = path.join(folder, 'ready');
  const printed = path.join(folder, 'log');
  const output = fs.openSync(printed, 'w');
  const gateway = spawn(
    process.env.ROPEWAY_COMMAND ?? 'ropeway',
    ['serve', '--grpc', '--listen=127.0.0.1:0', `--data=${path.join(folder, 'data')}`,
      `--ready-file=${ready}`, ...options],
    { stdio: ['ignore', output, output] },
  );
  fs.closeSync(output);
  const log = () => fs.readFileSync(printed, 'utf8');
  let failure;
  const ended = once(gateway, 'exit').catch((error) => { failure = error; });
  const killed = () => gateway.kill('SIGKILL');
  process.once('exit', killed);

  async function stop() {
    gateway.kill('SIGTERM');
    const timer = setTimeout(killed, STOP_MS);
    await ended;
    clearTimeout(timer);
    process.removeListener('exit', killed);
    fs.rmSync(folder, { recursive: true });
  }

  for (const deadline = Date.now() + START_MS; Date.now() < deadline; await sleep(20)) {
    const text = fs.existsSync(ready) ? fs.readFileSync(ready, 'utf8') : '';
    const found = /advertised as (\S+)\n/.exec(text);
    if (found) return { address: found[1], log, stop };
    if (failure || gateway.exitCode !== null) break;
  }
  const said = failure
    ? `${failure.message}; install Ropeway, or name its command in ROPEWAY_COMMAND`
    : `the gateway did not start:\n${log()}`;
  await stop();
  throw new Error(said);
}

module.exports = { startGateway };
