import unittest

from slug import slug


class SlugTest(unittest.TestCase):
    def test_words_are_joined_by_dashes(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_punctuation_leaves_no_trace(self):
        self.assertEqual(slug("Rock & Roll!"), "rock-roll")


if __name__ == "__main__":
    unittest.main()
