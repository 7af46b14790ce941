package exec

// Poison makes exchanges overwrite the batches they get back.
func (o *JobOptions) Poison() { o.poison = true }
