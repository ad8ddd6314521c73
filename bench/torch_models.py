"""The zoo's made models as PyTorch users have them: the same architectures and sizes, of torchvision, transformers and
torch.nn, with weights of their own. For times, not for values. What is not here has no such form and is left out."""
import pathlib

import torch
from torch import nn


def vision(name, **arguments):
    import torchvision

    return getattr(torchvision.models, name)(weights=None, **arguments)


def transformer(kind, config, **arguments):
    import transformers

    return getattr(transformers, kind)(getattr(transformers, config)(**arguments))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20000, 128)
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(512, 20)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def llama():
    return transformer("LlamaForCausalLM", "LlamaConfig", vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                       num_attention_heads=8, num_key_value_heads=2)


MODELS = {
    "mlp": lambda: nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)),
    "resnet50": lambda: vision("resnet50"),
    "mobilenet_v3_large": lambda: vision("mobilenet_v3_large"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "convnext_tiny": lambda: vision("convnext_tiny"),
    "vit_base_patch16_224": lambda: vision("vit_b_16"),
    "swin_tiny": lambda: vision("swin_t"),
    "bert_base": lambda: transformer("BertModel", "BertConfig"),
    "minilm_l6": lambda: transformer("BertModel", "BertConfig", hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
    "t5_small_encoder": lambda: transformer("T5EncoderModel", "T5Config"),
    "whisper_tiny_encoder": lambda: transformer("WhisperModel", "WhisperConfig", d_model=384, encoder_layers=4, encoder_attention_heads=6,
                                                encoder_ffn_dim=1536).encoder,
    "gpt2": lambda: transformer("GPT2LMHeadModel", "GPT2Config"),
    "gpt2_decode": lambda: transformer("GPT2LMHeadModel", "GPT2Config"),
    "llama_small": llama,
    "llama_small_decode": llama,
    "lstm_tagger": Tagger,
}


def call(name, model, feed):
    """What runs the model once on the zoo's inputs."""
    x = {k: torch.from_numpy(v) for k, v in feed.items()}
    if "input_ids" not in x:
        return lambda: model(*x.values())
    if not name.endswith("_decode"):
        return lambda: model(**x)
    import transformers

    layers = sum(1 for k in x if k.startswith("past_") and k.endswith("_key"))
    ids, mask = x["input_ids"], x["attention_mask"]

    def decode():
        cache = transformers.DynamicCache()
        for n in range(layers):
            cache.update(x[f"past_{n}_key"], x[f"past_{n}_value"], n)
        return model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)

    return decode


def runner(path, threads, feed, compiled):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    name = pathlib.Path(path).stem
    model = MODELS[name]().eval()
    return call(name, torch.compile(model) if compiled else model, feed)
