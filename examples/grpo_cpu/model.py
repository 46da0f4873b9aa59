"""The model, its tokens, and the task: the letters of a prompt in alphabetical order."""
import hashlib
import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

RUN = 'models/grpo'  # bucket and name of the run
BUCKET = 'rollouts'  # where the completions go from the rollouts to the trainer
LETTERS = 6  # of a prompt
PROMPT = LETTERS + 1  # tokens: the letters and '>'
ANSWER = LETTERS + 1  # tokens: the letters and the end of the line
END = ord('\n')

logging.set_verbosity_error()
torch.set_num_threads(1)  # three processes share the cores


def make_model(is_tiny=False):
    """A Llama of 1.3 million parameters in bf16 (tiny: 34,000) with random weights. Its tokens are
    the 256 bytes."""
    width, layers = (32, 2) if is_tiny else (160, 4)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=width, intermediate_size=width * 14 // 5,
        num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=4,
        max_position_embeddings=PROMPT + ANSWER, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=END, pad_token_id=None)).to(torch.bfloat16)


def make_prompts(count, source=random):
    """Texts like 'qwerty>'."""
    return [''.join(source.choices('abcdefghijklmnopqrstuvwxyz', k=LETTERS)) + '>'
            for _ in range(count)]


def answer_of(prompt):
    return ''.join(sorted(prompt[:LETTERS])) + '\n'


def reward_of(prompt, answer):
    """The share of the letters that stand in their place; 0 for an answer of another length."""
    wanted = answer_of(prompt)
    if len(answer) != len(wanted) or answer[-1] != '\n':
        return 0.0
    return sum(map(str.__eq__, answer[:LETTERS], wanted)) / LETTERS


def encode(texts):
    """Texts of one length as tokens, shape (texts, length)."""
    return torch.tensor([list(text.encode('latin-1')) for text in texts])


def decode(tokens):
    """Text up to the first end of a line."""
    return bytes(tokens.tolist()).decode('latin-1').partition('\n')[0] + '\n' * (END in tokens)


def mask_of(answers):
    """1 for the tokens up to the first end of a line, 0 behind it."""
    ends = (answers == END).long()
    return (ends.cumsum(1) - ends == 0).float()


def log_probabilities(model, tokens):
    """Of the tokens behind the prompt, shape (sequences, tokens)."""
    logits = model(tokens).logits[:, PROMPT - 1:-1].float()
    return logits.log_softmax(-1).gather(-1, tokens[:, PROMPT:, None]).squeeze(-1)


def sha256_of(state):
    """Of all names, dtypes, shapes and bytes of a state dict."""
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        digest.update(f'{name} {tensor.dtype} {list(tensor.shape)}\n'.encode())
        digest.update(tensor.detach().contiguous().view(torch.uint8).numpy())
    return digest.hexdigest()
