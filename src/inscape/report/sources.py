"""Full names of what the instruments cite by a short key."""

SOURCES = {
    "ainsworth2023git": (
        "Samuel K. Ainsworth, Jonathan Hayase and Siddhartha Srinivasa, “Git re-basin: merging "
        "models modulo permutation symmetries”, ICLR 2023"
    ),
    "bartlett2017spectrally": (
        "Peter L. Bartlett, Dylan J. Foster and Matus Telgarsky, “Spectrally-normalized margin "
        "bounds for neural networks”, NeurIPS 2017"
    ),
    "charpiat2019input": (
        "Guillaume Charpiat, Nicolas Girard, Loris Felardos and Yuliya Tarabalka, “Input "
        "similarity from the neural network perspective”, NeurIPS 2019"
    ),
    "constantine2014active": (
        "Paul G. Constantine, Eric Dow and Qiqi Wang, “Active subspace methods in theory and "
        "practice: applications to kriging surfaces”, SIAM Journal on Scientific Computing 36, 2014"
    ),
    "courtois2025path": (
        "Adrien Courtois, Jean-Michel Morel and Pablo Arias, “Can neural networks extrapolate? "
        "Discussion of a theorem by Pedro Domingos”, 2022"
    ),
    "croce2020reliable": (
        "Francesco Croce and Matthias Hein, “Reliable evaluation of adversarial robustness with "
        "an ensemble of diverse parameter-free attacks”, ICML 2020"
    ),
    "ding2021grounding": (
        "Frances Ding, Jean-Stanislas Denain and Jacob Steinhardt, “Grounding representation "
        "similarity through statistical testing”, NeurIPS 2021"
    ),
    "domingos2020every": (
        "Pedro Domingos, “Every model learned by gradient descent is approximately a kernel "
        "machine”, arXiv:2012.00152, 2020"
    ),
    "frankle2020linear": (
        "Jonathan Frankle, Gintare Karolina Dziugaite, Daniel M. Roy and Michael Carbin, “Linear "
        "mode connectivity and the lottery ticket hypothesis”, ICML 2020"
    ),
    "goldblum2020truth": (
        "Micah Goldblum, Jonas Geiping, Avi Schwarzschild, Michael Moeller and Tom Goldstein, "
        "“Truth or backpropaganda? An empirical investigation of deep learning theory”, ICLR 2020"
    ),
    "huh2024platonic": (
        "Minyoung Huh, Brian Cheung, Tongzhou Wang and Phillip Isola, “The platonic "
        "representation hypothesis”, ICML 2024"
    ),
    "jacot2018neural": (
        "Arthur Jacot, Franck Gabriel and Clément Hongler, “Neural tangent kernel: convergence "
        "and generalization in neural networks”, NeurIPS 2018"
    ),
    "klabunde2025similarity": (
        "Max Klabunde, Tobias Schumacher, Markus Strohmaier and Florian Lemmerich, “Similarity of "
        "neural network models: a survey of functional and representational measures”, ACM "
        "Computing Surveys, 2025"
    ),
    "klindt2023controlling": (
        "David A. Klindt, “Controlling Neural Network Smoothness for Neural Algorithmic "
        "Reasoning”, TMLR 2023"
    ),
    "kornblith2019similarity": (
        "Simon Kornblith, Mohammad Norouzi, Honglak Lee and Geoffrey Hinton, “Similarity of "
        "neural network representations revisited”, ICML 2019"
    ),
    "kubo2019implicit": (
        "Masayoshi Kubo, Ryotaro Banno, Hidetaka Manabe and Masataka Minoji, “Implicit "
        "regularization in over-parameterized neural networks”, arXiv:1903.01997, 2019"
    ),
    "lejeune2019implicit": (
        "Daniel LeJeune, Randall Balestriero, Hamid Javadi and Richard G. Baraniuk, “Implicit "
        "rugosity regularization via data augmentation”, arXiv:1905.11639, 2019"
    ),
    "liang2019fisher": (
        "Tengyuan Liang, Tomaso Poggio, Alexander Rakhlin and James Stokes, “Fisher-Rao metric, "
        "geometry, and complexity of neural networks”, AISTATS 2019"
    ),
    "madry2018towards": (
        "Aleksander Madry, Aleksandar Makelov, Ludwig Schmidt, Dimitris Tsipras and Adrian Vladu,"
        " “Towards deep learning models resistant to adversarial attacks”, ICLR 2018"
    ),
    "morcos2018insights": (
        "Ari S. Morcos, Maithra Raghu and Samy Bengio, “Insights on representational similarity in "
        "neural networks with canonical correlation”, NeurIPS 2018"
    ),
    "nagarajan2019generalization": (
        "Vaishnavh Nagarajan and J. Zico Kolter, “Generalization in deep networks: the role of "
        "distance from initialization”, arXiv:1901.01672, 2019"
    ),
    "raghu2017svcca": (
        "Maithra Raghu, Justin Gilmer, Jason Yosinski and Jascha Sohl-Dickstein, “SVCCA: singular "
        "vector canonical correlation analysis for deep learning dynamics and interpretability”, "
        "NeurIPS 2017"
    ),
    "rasmussen2006gaussian": (
        "Carl Edward Rasmussen and Christopher K. I. Williams, “Gaussian Processes for Machine "
        "Learning”, MIT Press, 2006"
    ),
    "sattelberg2026linearity": (
        "Ben Sattelberg, “Local Linearity of ReLU Neural Networks”, PhD dissertation, Colorado "
        "State University, 2026"
    ),
    "simonyan2014deep": (
        "Karen Simonyan, Andrea Vedaldi and Andrew Zisserman, “Deep inside convolutional networks: "
        "visualising image classification models and saliency maps”, ICLR workshop 2014"
    ),
    "song2012feature": (
        "Le Song, Alex Smola, Arthur Gretton, Justin Bedo and Karsten Borgwardt, “Feature "
        "selection via dependence maximization”, JMLR 2012"
    ),
    "sundararajan2017axiomatic": (
        "Mukund Sundararajan, Ankur Taly and Qiqi Yan, “Axiomatic attribution for deep networks”, "
        "ICML 2017"
    ),
    "virmaux2018lipschitz": (
        "Aladin Virmaux and Kevin Scaman, “Lipschitz regularity of deep neural networks: analysis"
        " and efficient estimation”, NeurIPS 2018"
    ),
    "volhejn2020smoothness": (
        "Václav Volhejn, “Smoothness of Functions Learned by Neural Networks”, bachelor thesis, "
        "Charles University, 2020"
    ),
    "williams2021generalized": (
        "Alex H. Williams, Erin Kunz, Simon Kornblith and Scott W. Linderman, “Generalized shape "
        "metrics on neural representations”, NeurIPS 2021"
    ),
}


def citation(cites: str) -> str:
    """Return citations with their keys spelled out, where these are known.

    >>> citation("volhejn2020smoothness, Eq. (3.1)").endswith("2020. Eq. (3.1)")
    True
    >>> citation("jacot2018neural; our definition").endswith("NeurIPS 2018; our definition")
    True
    """
    return "; ".join(_spelled(source) for source in cites.split("; "))


def _spelled(cited: str) -> str:
    key, _, place = cited.partition(", ")
    return ". ".join(filter(None, (SOURCES[key], place))) if key in SOURCES else cited
