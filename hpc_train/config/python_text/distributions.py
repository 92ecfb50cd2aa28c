"""What to install for a module: by the names of PyPI, which often are not those of the import."""

from __future__ import annotations

import re
import sys

_NAMES = {
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "IPython": "ipython",
    "MySQLdb": "mysqlclient",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cupy": "cupy-cuda12x",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "hydra": "hydra-core",
    "imblearn": "imbalanced-learn",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "nacl": "pynacl",
    "open_clip": "open-clip-torch",
    "openslide": "openslide-python",
    "pkg_resources": "'setuptools<81'",
    "pl_bolts": "lightning-bolts",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pynvml": "nvidia-ml-py",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "sksurv": "scikit-survival",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
_OF_PIPX = re.compile(r"/pipx/venvs/([^/]+)/?$")  # of the tool
_OF_UV = re.compile(r"/uv/tools/([^/]+)/?$")
# Well-known ones that are called as they are imported, but for _ and -.
_SAME = frozenset(
    (
        *("accelerate", "albumentations", "bitsandbytes", "boto3", "clearml", "comet_ml"),
        *("datasets", "deepspeed", "diffusers", "einops", "evaluate", "flash_attn", "fsspec"),
        *("gymnasium", "h5py", "jax", "joblib", "kornia", "librosa", "lightgbm", "lightning"),
        *("lmdb", "matplotlib", "mlflow", "monai", "mpi4py", "neptune", "networkx", "nibabel"),
        *("nltk", "numba", "numpy", "omegaconf", "onnx", "onnxruntime"),
        *("onnxscript", "optuna", "pandas", "peft", "plotly", "polars"),
        *("psutil", "pyarrow", "pycocotools", "pydantic", "pydicom", "pytest", "requests", "rich"),
        *("pytorch_lightning", "safetensors", "scipy", "seaborn", "sentence_transformers"),
        *("segmentation_models_pytorch", "sentencepiece", "sentry_sdk", "soundfile", "spacy"),
        *("sympy", "tensorboard", "tensorboardX", "tensorflow", "tiktoken", "timm", "tokenizers"),
        *("torch", "torch_geometric", "torchaudio", "torchdata", "torchmetrics", "torchtext"),
        *("torchvision", "tqdm", "transformers", "wandb", "webdataset", "xarray", "xgboost"),
        *("xformers", "zarr"),
    )
)


def is_well_known(module: str) -> bool:
    """Whether a name is surely that of a package, and no slip for another one."""
    return module in _NAMES or module in _SAME


def distribution(module: str) -> str:
    """The package that has a module, by PyPI's name of it where that is known."""
    return _NAMES.get(module, module.replace("_", "-") if module in _SAME else module)


def install(module: str) -> str:
    """`pip install opencv-python-headless` for `cv2`; of other names, that they may differ."""
    if is_well_known(module):
        return install_here(distribution(module))
    return f"{install_here(module)} (often its package has another name)"


def install_here(requirements: str) -> str:
    """What installs packages into this Python: pipx and uv tool have no pip of their own to type.

    Args:
        requirements: As pip takes them, quoted for a shell.
    """
    if found := _OF_PIPX.search(sys.prefix):
        return f"pipx inject {found[1]} {requirements}"
    if found := _OF_UV.search(sys.prefix):
        return f"uv tool install {found[1]} --with {','.join(requirements.split())}"
    return f"pip install {requirements}"
