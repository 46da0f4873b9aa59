-- The tables are counted anew; the number of the last change stays.
UPDATE sums SET tables = x'';

-- What the proof of a step has counted: how many elements of its tensors differ from those of the step before. counts: a number for each tensor, in the
-- order of the schema, of seven bits a byte, the lowest first, with the top bit where more follow. A step without a row was not counted.
CREATE TABLE step_changes (
	step INTEGER PRIMARY KEY,
	elements INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	counts BLOB NOT NULL
);
