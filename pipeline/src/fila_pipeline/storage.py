"""Files of a history under whatever URL Spark can read: through Hadoop's file systems, which Spark brings along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

PIECE = 1 << 20
"""Bytes that are handed to Java at once."""

S3_CLIENT = "org.apache.hadoop:hadoop-aws"
"""What PySpark lacks to read s3a://; it must be of the version of Hadoop that PySpark brings along."""

EVERYWHERE = "a directory that every machine has mounted, or a URL"


class StorageUnreachable(Exception):
    """Nothing that Spark has can open a URL, or what it leads to does not answer."""


class Storage:
    """The files below one directory, by paths relative to it."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self.spark = spark
        self.directory = directory.rstrip("/")
        self._jvm: Any = spark._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._path("").getFileSystem(self._conf)
        # A checksum file beside each small file would be one more file that says nothing to the next reader.
        self._files.setWriteChecksum(False)

    @classmethod
    def reached(cls, spark: SparkSession, directory: str) -> Storage:
        """Return the storage once it has answered, though the directory need not exist.

        Raises StorageUnreachable, which says why not and what to do.
        """
        try:
            storage = cls(spark, directory)
            storage.names("")
        except IllegalArgumentException as error:
            raise StorageUnreachable(f"it is no URL ({error})") from None
        except UnsupportedOperationException:
            scheme = directory.partition("://")[0]
            raise StorageUnreachable(
                f"files of {scheme}:// cannot be listed, nor written; give a directory, or the URL of an object store"
            ) from None
        except Py4JJavaError as error:
            raise StorageUnreachable(_why_unreachable(spark, directory, error.java_exception)) from None
        return storage

    @property
    def local(self) -> Path | None:
        """The directory as a path, where it is on a disk of this machine (or one mounted like a disk); else None."""
        if self._files.getUri().getScheme() != "file":
            return None
        return Path(self._files.makeQualified(self._path("")).toUri().getPath())

    @contextmanager
    def at_hand(self, files: Sequence[str]) -> Iterator[Path]:
        """Give a folder in which these files can be opened by path: the directory, or for a while a copy of them."""
        if self.local is not None:
            yield self.local
            return
        with TemporaryDirectory(prefix="fila-history-") as folder:
            for file in files:
                target = Path(folder) / file
                target.parent.mkdir(parents=True, exist_ok=True)
                to = self._jvm.org.apache.hadoop.fs.Path(str(target))
                self._files.copyToLocalFile(False, self._path(file), to, True)
            yield Path(folder)

    def exists(self, path: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none where there is no such folder."""
        if not self.exists(folder):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._path(folder))]

    def present(self, files: Sequence[str]) -> set[str]:
        """Return which of these files are there: an object store takes as long to tell of one as of a folder."""
        folders = {file.rpartition("/")[0] for file in files}
        return {f"{folder}/{name}" for folder in folders for name in self.names(folder)} & set(files)

    def copy(self, source: str, target: str) -> None:
        """Copy a file over whatever is there; object stores have no other way to name one anew."""
        copied = self._jvm.org.apache.hadoop.fs.FileUtil.copy(
            self._files, self._path(source), self._files, self._path(target), False, True, self._conf
        )
        if not copied:
            raise OSError(f"{self.directory}/{source} could not be copied to {target}")

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file over whatever is there."""
        data = content.encode() if isinstance(content, str) else content
        stream = self._files.create(self._path(path), True)
        try:
            for at in range(0, len(data), PIECE):
                stream.write(data[at : at + PIECE])
        finally:
            stream.close()

    def write_table(self, table: str, frame: DataFrame) -> str:
        """Write a table as one file, over whatever is there; returns its path.

        Raises StorageUnreachable where executors wrote it to disks of their own: what is read back would be empty.
        """
        path = f"{self.directory}/{table}.parquet"
        frame.coalesce(1).write.mode("overwrite").parquet(path)
        if not any(name.startswith("part-") for name in self.names(f"{table}.parquet")):
            raise StorageUnreachable(
                f"{self.directory} is not the same place everywhere: the executors wrote {table}.parquet where this "
                f"process does not see it; on a cluster --out is {EVERYWHERE}"
            )
        return path

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and what is in it; nothing where there is none."""
        self._files.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.directory}/{path}" if path else self.directory)


def _why_unreachable(spark: SparkSession, directory: str, error: Any) -> str:
    """Say it from the first of the causes, where Java puts what happened."""
    while error.getCause() is not None:
        error = error.getCause()
    kind, said = error.getClass().getSimpleName(), error.getMessage()
    scheme = directory.partition("://")[0]
    jvm: Any = spark._jvm
    package = f"{S3_CLIENT}:{jvm.org.apache.hadoop.util.VersionInfo.getVersion()}"
    if scheme == "s3" and kind == "UnsupportedFileSystemException":
        return f"Spark calls it s3a:// and needs --conf spark.jars.packages={package}"
    if kind == "ClassNotFoundException":
        missing = f"PySpark comes without what opens {scheme}:// ({said})"
        wanted = package if scheme == "s3a" else "GROUP:ARTIFACT:VERSION of what has it"
        return f"{missing}; give --conf spark.jars.packages={wanted}, or its jars as --conf spark.jars=A.jar,B.jar"
    return f"{kind}: {said}"
