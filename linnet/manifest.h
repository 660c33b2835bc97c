/*
 * manifest.h - lists of recordings as other toolkits write them: JSON lines and tables.
 *
 * Pipeline: linnet/datadir, which looks at the first bytes of a list -> [this] -> linnet/datadir.
 *
 *   {"audio_filepath": "a.wav", "text": "how are you", "duration": 2.5}        NeMo; the scripts around Whisper
 *   {"audio_filepath": "call.wav", "offset": 3.2, "duration": 2.5, ...}        a part of a recording
 *   {"audio": {"path": "a.wav"}, "sentence": "how are you"}                    data sets of Hugging Face
 *   {"type": "MonoCut", "id": ..., "recording": {...}, "supervisions": [...]}  Lhotse's cuts: an utterance for each supervision
 *   client_id<TAB>path<TAB>sentence ...                                        Common Voice: a table whose first line names the
 *                                                                              columns
 *
 * Keys of an object, the first that is there: the sound audio_filepath, audio_path, audio_file, file_name, path, wav, audio; the
 * text text, sentence, transcription, transcript; the name id, utt_id, key, else the path as in a plain list, with the offset in
 * milliseconds; the speaker speaker, speaker_id, client_id. Other keys are kept in lin_utterance.record and mean nothing here.
 */
#ifndef LIN_LINNET_MANIFEST_H
#define LIN_LINNET_MANIFEST_H

#include "linnet/datadir.h"

/* Whether a list is one of these: it begins with '{', or its first line names columns "path" and "sentence". */
typedef enum lin_manifest_kind { LIN_MANIFEST_NONE, LIN_MANIFEST_OBJECTS, LIN_MANIFEST_TABLE } lin_manifest_kind;
lin_manifest_kind lin_manifest_is(const lin_datadir_file *file);

/* LIN_FORMAT with file and line: not JSON, no path, a time that is none, a cut of several recordings or without one; else as
 * lin_datadir_parse_list. LIN_UNSUPPORTED: sound that is neither a file nor an allowed command. */
lin_status lin_manifest_parse(const lin_datadir_file *file, const lin_datadir_options *options, lin_datadir **dir,
                              lin_error *err);

#endif
