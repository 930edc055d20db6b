"""What a person sees of each job: the answer in a sentence, the plot that shows it, the table behind it."""
