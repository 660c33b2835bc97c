"""A pile of files on Ray: every worker loads the model once, and a row of the output is a file.

    python3 ray_files.py OUT-FOLDER FILE...

On a cluster the same program runs through `ray job submit`; paths must be readable from all machines, and the package installed there
(or named in runtime_env={"pip": ["linnet-....whl"]}). A file that cannot be read is a row with its error, the others are done.
"""

import json
import sys

import linnet
import ray


class Transcriber:
    """One for each core: the model and the decoder are made once."""

    def __init__(self):
        self.model = linnet.load()
        self.decoder = self.model.decoder(words=True)

    def __call__(self, row):
        try:
            result = self.model.transcribe(row["path"], decoder=self.decoder)
        except linnet.Error as error:
            return {"path": row["path"], "text": "", "seconds": 0.0, "json": "", "error": str(error)}
        return {"path": row["path"], "text": result.readable, "seconds": result.seconds, "json": result.to_json(id=row["path"]),
                "error": result.warning}


def main(folder, paths):
    ray.init(logging_level="ERROR", log_to_driver=False)
    cores = max(1, int(ray.cluster_resources()["CPU"]))
    files = ray.data.from_items([{"path": path} for path in paths], override_num_blocks=min(len(paths), 4 * cores))
    done = files.map(Transcriber, concurrency=(1, cores), num_cpus=1).materialize()
    done.write_json(folder)
    rows = done.take_all()
    print(json.dumps({"files": len(rows), "seconds": sum(r["seconds"] for r in rows), "errors": sum(not r["json"] for r in rows)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
