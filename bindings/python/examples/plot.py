"""What the network hears: spectrogram, posteriors, and the phonemes and words aligned with it.

    python3 plot.py SOUND PICTURE.png [SECONDS]
"""

import argparse

parser = argparse.ArgumentParser(description="A picture of what the network hears: spectrogram, posteriors, phonemes and words.")
parser.add_argument("sound", help="a file with speech")
parser.add_argument("picture", help="the picture to write; its name ends in .png, .svg or .pdf")
parser.add_argument("seconds", type=float, nargs="?", default=5.0, help="of the sound, from its beginning (%(default)s)")
given = parser.parse_args()
sound, picture, seconds = given.sound, given.picture, given.seconds

import linnet  # noqa: E402
import matplotlib  # noqa: E402
import numpy as np  # noqa: E402

matplotlib.use("Agg")  # draws into a file
import matplotlib.pyplot as plt  # noqa: E402

model = linnet.load()
features = model.features(sound, end_s=seconds)  # [n, 40] log-mel energies
posteriors = np.exp(model.posteriors(sound, end_s=seconds))  # [n, 40] probabilities
result = model.transcribe(sound, decoder=model.decoder(words=True, no_unknown=True), end_s=seconds)
aligned = model.align(sound, result.text, end_s=seconds) if result.words else result  # follows the sound, not the rows

figure, (mel, rows, tier) = plt.subplots(3, sharex=True, figsize=(14, 8), height_ratios=[3, 5, 1], layout="constrained")
end = len(features) * model.frame_s

mel.imshow(features.T, origin="lower", aspect="auto", extent=(0, end, 0, features.shape[1]), cmap="magma")
mel.set_ylabel("mel bin")
mel.set_title(result.readable)

likely = [i for i in range(1, len(model.phones)) if posteriors[:, i].max() > 0.2]
rows.imshow(posteriors[:, likely].T, origin="lower", aspect="auto", extent=(0, len(posteriors) * model.row_s, -0.5, len(likely) - 0.5),
            cmap="Greys", vmin=0, vmax=1)
rows.set_yticks(range(len(likely)), [f"{model.phones[i]}  {model.ipa[i]}" for i in likely], fontsize=7)
rows.set_ylabel("posteriors")

aligned.plot(tier)
tier.set(xlim=(0, end), ylabel="phonemes")

figure.savefig(picture, dpi=120)
print(f"{picture}: {result.readable}")
