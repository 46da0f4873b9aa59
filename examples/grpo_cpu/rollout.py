"""A rollout: follows the run in memory, proves each step, generates, hands the completions back."""
import argparse
import json
import os
import time

import torch

import deltabucket
from model import (ANSWER, BUCKET, END, PROMPT, RUN, encode, make_model, make_prompts, sha256_of)


def main():
    settings = parse()
    torch.seed()  # each rollout, and each life of it, draws other completions
    model = make_model(settings.tiny).eval()
    state = model.state_dict()
    run = deltabucket.Run(RUN, threads=1, progress=False)
    bucket = deltabucket.Bucket(BUCKET)
    with open(settings.log, 'a', buffering=1) as log, \
            run.follow(replica=settings.name) as steps:
        for step in steps:
            step.apply_into(state)
            published = next(run.steps(step.number))
            prove(step, state, published.metadata['sha256'], log)
            steps.report('ready')
            if published.metadata['last'] == 'True':
                return
            batch = generate(model, settings.prompts, settings.group)
            batch.update(step=step.number, worker=settings.name)
            bucket.put(f'{step.number:06}-{settings.name}-{os.getpid()}.json',
                       json.dumps(batch).encode())


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--name', default='rollout-0')
    parser.add_argument('--prompts', type=int, default=8, help='of a batch')
    parser.add_argument('--group', type=int, default=8, help='completions of a prompt')
    parser.add_argument('--tiny', action='store_true')
    parser.add_argument('--log', default='rollout-0.jsonl')
    return parser.parse_args()


def prove(step, state, wanted, log):
    """The weights that the model computes with are those that the trainer's model had."""
    sha256 = sha256_of(state)
    log.write(json.dumps({'step': step.number, 'pid': os.getpid(), 'sha256': sha256,
                          'digest': step.digest, 'is_identical': sha256 == wanted,
                          'came_whole': step.came_whole, 'fetched': step.fetched_bytes,
                          'lag': step.lag, 'time': time.time()}) + '\n')
    if sha256 != wanted:
        raise SystemExit(f'Step {step.number} has the SHA-256 {sha256} here; the trainer had '
                         f'{wanted}.')


@torch.no_grad()
def generate(model, prompts, group):
    """`group` completions of each of new prompts, with the probabilities that they had."""
    tokens = encode(make_prompts(prompts)).repeat_interleave(group, 0)
    made = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=ANSWER,
                          do_sample=True, top_k=0, pad_token_id=END, output_logits=True,
                          return_dict_in_generate=True)
    probabilities = torch.stack(made.logits, 1).float().log_softmax(-1)
    answers = made.sequences[:, PROMPT:, None]
    return {'group': group, 'tokens': made.sequences.tolist(),
            'log_probabilities': probabilities.gather(-1, answers).squeeze(-1).tolist()}


if __name__ == '__main__':
    main()
