"""A pile of files on Spark, through a pandas_udf: every Python worker loads the model once, and a row of the output is a file.

    python3 spark_files.py OUT-FOLDER FILE...

On a cluster the same program runs through `spark-submit`; paths must be readable from all machines, and the package installed there.
Needs a Java runtime (Debian: default-jre-headless). A file that cannot be read is a row with its error, the others are done.
"""

import json
import sys
from typing import Iterator

import linnet
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf


def main(folder, paths):
    spark = SparkSession.builder.appName("linnet").config("spark.ui.enabled", False).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    model = linnet.load()
    decoder = model.decoder(words=True)  # both are pickled as their options: a worker process loads them once

    def row(path):
        try:
            result = model.transcribe(path, decoder=decoder)
        except linnet.Error as error:
            return "", 0.0, "", str(error)
        return result.readable, result.seconds, result.to_json(id=path), result.warning

    @pandas_udf("text string, seconds double, json string, error string")
    def transcribe(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield pd.DataFrame([row(path) for path in batch], columns=["text", "seconds", "json", "error"])

    parts = min(len(paths), 4 * spark.sparkContext.defaultParallelism)
    files = spark.createDataFrame([(path,) for path in paths], "path string").repartition(parts)
    done = files.select("path", transcribe("path").alias("result")).select("path", "result.*").cache()
    done.write.json(folder)
    rows = done.collect()
    print(json.dumps({"files": len(rows), "seconds": sum(r.seconds for r in rows), "errors": sum(not r.json for r in rows)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
