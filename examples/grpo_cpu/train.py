"""GRPO: takes completions from the bucket, makes a step of the optimizer, publishes the weights.

The weights are bf16, as engines want them; the optimizer works on a copy in fp32, or its small
steps would be lost in the rounding. That is also why a delta is small: most steps of most weights
do not reach the next bf16 number.
"""
import argparse
import copy
import json
import random
import time

import torch

import deltabucket
from model import (BUCKET, PROMPT, RUN, answer_of, decode, encode, log_probabilities,
                   make_model, make_prompts, mask_of, reward_of, sha256_of)

CLIP = 0.2  # how far the ratio to the probabilities of the rollout may move the policy
MAX_AGE = 4  # steps; older completions are left out
WAIT_SECONDS = 120


class Policy:
    """bf16 weights, and their fp32 copies in the optimizer."""

    def __init__(self, model, rate):
        self.model = model
        self.weights = list(model.parameters())  # tied weights once
        self.masters = [weight.detach().float() for weight in self.weights]
        self.optimizer = torch.optim.AdamW(self.masters, rate, weight_decay=0)

    def step(self):
        """Uses up the gradients of the weights."""
        for master, weight in zip(self.masters, self.weights):
            master.grad, weight.grad = weight.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.masters, 1)
        self.optimizer.step()
        with torch.no_grad():
            for master, weight in zip(self.masters, self.weights):
                weight.copy_(master)


def main():
    settings = parse()
    random.seed(settings.seed)
    torch.manual_seed(settings.seed)
    model = make_model(settings.tiny)
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f'A Llama with {parameters:,} parameters, supervised for {settings.supervised} steps ...')
    supervise(Policy(model, settings.supervised_rate), settings.supervised)
    with open(settings.log, 'w', buffering=1) as log, deltabucket.Run(
            RUN, create_bucket=True, threads=1, progress=False) as run:
        train(model, run, log, settings)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--rate', type=float, default=6e-5, help='of the optimizer')
    parser.add_argument('--kl', type=float, default=0.01,
                        help='weight of the divergence from the supervised model; 0 for none')
    parser.add_argument('--supervised', type=int, default=70, help='steps before')
    parser.add_argument('--supervised-rate', type=float, default=2e-3)
    parser.add_argument('--workers', type=int, default=2, help='rollouts that are waited for')
    parser.add_argument('--meet', type=int, default=20,
                        help='all workers are waited for again that many steps before the end')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--tiny', action='store_true')
    parser.add_argument('--log', default='trainer.jsonl')
    return parser.parse_args()


def supervise(policy, steps):
    """Shows the model right answers: enough for the form, not for the task."""
    for _ in range(steps):
        prompts = make_prompts(64)
        tokens = encode([prompt + answer_of(prompt) for prompt in prompts])
        (-log_probabilities(policy.model, tokens).mean()).backward()
        policy.step()


def train(model, run, log, settings):
    bucket = deltabucket.Bucket(BUCKET)
    bucket.create()
    reference = copy.deepcopy(model).requires_grad_(False) if settings.kl else None
    policy = Policy(model, settings.rate)
    publish(model, run, 0, log, {'is_last': settings.steps == 0})
    for step in range(1, settings.steps + 1):
        if step in (1, settings.steps - settings.meet):
            await_workers(run, settings.workers, step - 1)
        batches = take(bucket, step - 1)
        results = [learn(policy.model, reference, batch, settings.kl, len(batches))
                   for batch in batches]
        policy.step()
        rewards = torch.cat(results)
        publish(model, run, step, log, {
            'is_last': step == settings.steps, 'reward': rewards.mean().item(),
            'solved': (rewards == 1).float().mean().item(), 'completions': len(rewards),
            'workers': sorted({batch['worker'] for batch in batches}),
            'ages': [step - 1 - batch['step'] for batch in batches]})


def take(bucket, newest):
    """The batches that lie in the bucket, at least one. They go from there."""
    limit = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < limit:
        batches = []
        for item in bucket.list():
            batch = json.loads(bucket.get(item.key))
            bucket.remove(item.key)
            if newest - batch['step'] <= MAX_AGE:
                batches.append(batch)
        if batches:
            return batches
        time.sleep(0.02)
    raise SystemExit(f'No completions came in {WAIT_SECONDS} seconds.')


def learn(model, reference, batch, kl, batches):
    """Adds the gradients of one batch; gives its rewards."""
    tokens = torch.tensor(batch['tokens'])
    answers = tokens[:, PROMPT:]
    rewards = torch.tensor([reward_of(decode(one[:PROMPT]), decode(one[PROMPT:]))
                            for one in tokens])
    groups = rewards.view(-1, batch['group'])  # the completions of one prompt
    spread = groups.std(1, keepdim=True) + 1e-4
    advantages = ((groups - groups.mean(1, keepdim=True)) / spread).view(-1, 1)

    now = log_probabilities(model, tokens)
    ratio = (now - torch.tensor(batch['log_probabilities'])).exp()
    gain = torch.minimum(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
    if reference is not None:
        with torch.no_grad():
            difference = log_probabilities(reference, tokens)
        difference = difference - now
        gain = gain - kl * (difference.exp() - difference - 1)
    mask = mask_of(answers)
    loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
    (loss / batches).backward()
    return rewards


def publish(model, run, step, log, facts):
    """The weights with their SHA-256, and a line of the log."""
    sha256 = sha256_of(model.state_dict())
    begin = time.monotonic()
    sent = deltabucket.publish_model(
        model, run, step, metadata={'sha256': sha256, 'last': str(facts['is_last'])})
    facts.update(step=step, sha256=sha256, digest=sent.digest, seconds=time.monotonic() - begin,
                 delta=sent.delta_bytes, anchor=sent.anchor_bytes, checkpoint=sent.checkpoint_bytes,
                 changed=sent.changed_elements / max(1, sent.elements), time=time.time())
    log.write(json.dumps(facts) + '\n')
    sizes = f'delta {sent.delta_bytes:>9,} of {sent.checkpoint_bytes:,} bytes'
    if not sent.delta_bytes:
        sizes = f'whole {sent.anchor_bytes:>9,} of {sent.checkpoint_bytes:,} bytes'
    print(f'step {step:3}  {sizes}', end='')
    if 'reward' in facts:
        print(f' ({100 * sent.delta_bytes / sent.checkpoint_bytes:4.1f} %)  '
              f'reward {facts["reward"]:.3f}  all right {facts["solved"]:.3f}  '
              f'of {facts["completions"]} from {", ".join(facts["workers"])}', end='')
    print(flush=True)


def await_workers(run, count, step):
    """Waits until so many workers serve this step, the newest one."""
    limit = time.monotonic() + WAIT_SECONDS
    while sum(worker.step == step and worker.state == 'ready' for worker in run.fleet()) < count:
        if time.monotonic() > limit:
            raise SystemExit(f'Fewer than {count} workers reached step {step} in {WAIT_SECONDS} '
                             'seconds.')
        time.sleep(0.1)


if __name__ == '__main__':
    main()
