"""Tiny checkpoints whose tensors vLLM keeps in other layouts than the checkpoint's."""
import ml_dtypes
import numpy

from tests.support.vllm_models import COMMON, MODELS, shapes_of

LINEARS = {'self_attn.q_proj': (64, 64), 'self_attn.k_proj': (32, 64), 'self_attn.v_proj': (32, 64), 'self_attn.o_proj': (64, 64),
           'mlp.gate_proj': (128, 64), 'mlp.up_proj': (128, 64), 'mlp.down_proj': (64, 128)}
# DeepSeek's attention: one compressed key and value for all heads.
LATENT = {'self_attn.q_proj': (128, 64), 'self_attn.kv_a_proj_with_mqa': (48, 64), 'self_attn.kv_b_proj': (128, 32), 'self_attn.o_proj': (64, 64),
          **{name: shape for name, shape in LINEARS.items() if name.startswith('mlp')}}
DEEPSEEK = {'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', 'q_lora_rank': None, 'kv_lora_rank': 32, 'qk_nope_head_dim': 16,
            'qk_rope_head_dim': 16, 'v_head_dim': 16, 'first_k_dense_replace': 2, 'moe_intermediate_size': 32, 'num_key_value_heads': 4}


def plain(name, shape):
    return {f'{name}.weight': (shape, ml_dtypes.bfloat16)}


def int4(name, shape):
    """llm-compressor's W4A16: eight numbers of four bits in a word, and a scale for each 32 of a row."""
    rows, columns = shape
    return {f'{name}.weight_packed': ((rows, columns // 8), numpy.int32), f'{name}.weight_scale': ((rows, columns // 32), ml_dtypes.bfloat16),
            f'{name}.weight_shape': ((2,), numpy.int64)}


def fp8(name, shape):
    """Its FP8_DYNAMIC: a scale for each row."""
    return {f'{name}.weight': (shape, ml_dtypes.float8_e4m3fn), f'{name}.weight_scale': ((shape[0], 1), numpy.float32)}


def compressed(form, weights, activations=None, **more):
    group = {'targets': ['Linear'], 'weights': {'symmetric': True, **weights}, 'input_activations': activations}
    return {'quantization_config': {'quant_method': 'compressed-tensors', 'format': form, 'config_groups': {'group_0': group}, 'ignore': ['lm_head'],
                                    **more}}


INT4 = compressed('pack-quantized', {'num_bits': 4, 'type': 'int', 'strategy': 'group', 'group_size': 32})
FP8_ROWS = ({'num_bits': 8, 'type': 'float', 'strategy': 'channel'},
            {'num_bits': 8, 'type': 'float', 'symmetric': True, 'strategy': 'token', 'dynamic': True})
FP8 = compressed('float-quantized', *FP8_ROWS)
# {kind: (config, the linear layers, how each is stored)}
KINDS = {
    'int4': ({**MODELS['llama'], **INT4}, LINEARS, int4),
    'fp8': ({**MODELS['llama'], **FP8}, LINEARS, fp8),
    'bf16': (MODELS['llama'], LINEARS, plain),
    'latent': (DEEPSEEK, LATENT, plain),
    'latent-fp8': ({**DEEPSEEK, **FP8}, LATENT, fp8),
    'draft': ({**DEEPSEEK, 'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'num_nextn_predict_layers': 1,
               'first_k_dense_replace': 3}, LATENT, plain),
    'experts': (MODELS['experts'], {}, plain),
}


def config_of(kind):
    return {**COMMON, 'intermediate_size': 128, **KINDS[kind][0]}


def tensors_of(kind):
    """{name: (shape, dtype)} of the checkpoint."""
    _, linears, stored = KINDS[kind]
    if kind == 'experts':
        return {name: (shape, ml_dtypes.bfloat16) for name, shape in shapes_of(kind).items()}
    tensors = {}
    for layer in range(COMMON['num_hidden_layers']):
        for name, shape in linears.items():
            tensors.update(stored(f'model.layers.{layer}.{name}', shape))
        names = ['input_layernorm', 'post_attention_layernorm']
        tensors.update({f'model.layers.{layer}.{name}.weight': ((64,), ml_dtypes.bfloat16) for name in names})
        if linears is LATENT:
            tensors[f'model.layers.{layer}.self_attn.kv_a_layernorm.weight'] = ((32,), ml_dtypes.bfloat16)
    if kind == 'draft':  # one layer more, which guesses the token after the next one
        tensors.update({name.replace('layers.1.', 'layers.2.'): what for name, what in tensors.items()})
        names = {'enorm': (64,), 'hnorm': (64,), 'eh_proj': (64, 128), 'shared_head.norm': (64,), 'shared_head.head': (128, 64), 'embed_tokens': (128, 64)}
        tensors.update({f'model.layers.2.{name}.weight': (shape, ml_dtypes.bfloat16) for name, shape in names.items()})
    tensors.update({'model.embed_tokens.weight': ((128, 64), ml_dtypes.bfloat16), 'lm_head.weight': ((128, 64), ml_dtypes.bfloat16),
                    'model.norm.weight': ((64,), ml_dtypes.bfloat16)})
    return tensors


def filled(random, shape, dtype):
    """Finite numbers, as a trainer has them: vLLM computes with them when it makes its own."""
    if numpy.dtype(dtype).kind == 'i':
        return random.integers(numpy.iinfo(dtype).min, numpy.iinfo(dtype).max, shape, dtype, endpoint=True)
    return (random.standard_normal(shape) + 3).astype(dtype)
